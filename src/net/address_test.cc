#include "net/address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pscloud {
namespace {

TEST(Address, ReadsNamesAndBothKindsOfNumbers) {
  EXPECT_EQ(parse_address("node-7.lan:4000"), (Address{"node-7.lan", 4000}));
  EXPECT_EQ(parse_address("10.0.0.7:0"), (Address{"10.0.0.7", 0}));
  EXPECT_EQ(parse_address("[fd00::7]:65535"), (Address{"fd00::7", 65535}));
}

TEST(Address, IsWrittenAsItIsRead) {
  for (const char* text : {"localhost:1", "127.0.0.1:40123", "[::1]:80"}) EXPECT_EQ(parse_address(text)->text(), text);
}

TEST(Address, SaysWhatIsWrong) {
  const auto why = [](const char* text) {
    const auto address = parse_address(text);
    return address ? std::string("nothing") : address.error().message;
  };
  EXPECT_EQ(why("localhost"),
            "\"localhost\" is not an address: it has no port; write host:port, 10.0.0.7:4000 or [::1]:4000");
  EXPECT_THAT(why("::1:80"), testing::HasSubstr("stands in brackets"));
  EXPECT_THAT(why("[host]:80"), testing::HasSubstr("brackets are for IPv6"));
  EXPECT_THAT(why(":80"), testing::HasSubstr("no host"));
  EXPECT_THAT(why("[]:80"), testing::HasSubstr("brackets"));
  EXPECT_THAT(why("http://host:80"), testing::HasSubstr("brackets"));
  EXPECT_THAT(why("a b:80"), testing::HasSubstr("character no host has"));
  for (const char* text : {"host:", "host:x", "host:-1", "host:65536", "host:80 ", "host:+80", "host:0x50"}) {
    EXPECT_THAT(why(text), testing::HasSubstr("port is not a number")) << text;
  }
}

TEST(Address, KnowsLoopback) {
  for (const char* host : {"127.0.0.1", "127.255.0.9", "::1", "localhost", "::ffff:127.0.0.1"}) {
    EXPECT_TRUE(is_loopback(host)) << host;
  }
  for (const char* host : {"128.0.0.1", "0.0.0.0", "::", "::2", "10.0.0.1", "localhost.example.org", "", "127.1"}) {
    EXPECT_FALSE(is_loopback(host)) << host;
  }
}

TEST(Address, KnowsPrivateNetworksToTheirEdges) {
  for (const char* host :
       {"10.0.0.0", "10.255.255.255", "172.16.0.0", "172.31.255.255", "192.168.0.1", "100.64.0.0", "100.127.255.255",
        "169.254.1.1", "fc00::1", "fdff::1", "fe80::1", "fe80::1%eth0", "febf::1", "127.0.0.1", "::ffff:10.0.0.1"}) {
    EXPECT_TRUE(is_private(host)) << host;
  }
  for (const char* host : {"9.255.255.255", "11.0.0.0", "172.15.255.255", "172.32.0.0", "192.167.255.255",
                           "192.169.0.0", "100.63.255.255", "100.128.0.0", "169.253.0.1", "fbff::1", "fe00::1",
                           "fec0::1", "2001:db8::1", "8.8.8.8", "::ffff:8.8.8.8", "0.0.0.0", "10.example.org"}) {
    EXPECT_FALSE(is_private(host)) << host;
  }
}

}  // namespace
}  // namespace pscloud

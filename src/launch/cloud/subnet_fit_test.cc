#include "launch/cloud/subnet_fit.h"

#include <gmock/gmock.h>

namespace pscloud {
namespace {

AddressBlock block_of(const char* text) { return parse_address_block(text).value(); }

TEST(SubnetFit, BlocksAreReadAndWritten) {
  EXPECT_EQ(block_of("172.31.16.0/20").text(), "172.31.16.0/20");
  EXPECT_EQ(block_of("0.0.0.0/0").size(), uint64_t{1} << 32);
  EXPECT_EQ(block_of("255.255.255.255/32").text(), "255.255.255.255/32");
  for (const char* wrong : {"", "10.0.0.0", "10.0.0.0/33", "10.0.0/8", "10.0.0.1/8", "10.0.0.0.0/8", "10.0.256.0/24",
                            "a.b.c.d/8", "10.0.0.0/", "10..0.0/8"}) {
    EXPECT_EQ(parse_address_block(wrong).error().code, Code::kInvalid) << wrong;
  }
}

// 32 - ceil(log2(machines + 10)), as the benchmark tool of Paddle had it.
TEST(SubnetFit, ASubnetHasTenAddressesMoreThanMachines) {
  EXPECT_EQ(subnet_prefix(1).value(), 28);
  EXPECT_EQ(subnet_prefix(6).value(), 28);
  EXPECT_EQ(subnet_prefix(7).value(), 27);
  EXPECT_EQ(subnet_prefix(22).value(), 27);
  EXPECT_EQ(subnet_prefix(23).value(), 26);
  EXPECT_EQ(subnet_prefix(1000).value(), 22);
  EXPECT_EQ(subnet_prefix(70000).error().code, Code::kInvalid);
}

TEST(SubnetFit, TheFirstFreeBlockIsTaken) {
  const AddressBlock vpc = block_of("172.31.0.0/16");
  EXPECT_EQ(fit_subnet(vpc, {}, 3).value().text(), "172.31.0.0/28");
  EXPECT_EQ(fit_subnet(vpc, {block_of("172.31.0.0/20"), block_of("172.31.16.0/20")}, 3).value().text(),
            "172.31.32.0/28");
  // Smaller ones in between, and a hole.
  EXPECT_EQ(fit_subnet(vpc, {block_of("172.31.0.16/28"), block_of("172.31.0.0/28")}, 20).value().text(),
            "172.31.0.32/27");
}

TEST(SubnetFit, AFullNetworkIsTold) {
  const auto none = fit_subnet(block_of("10.0.0.0/27"), {block_of("10.0.0.0/28"), block_of("10.0.0.16/28")}, 2);
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().message, testing::HasSubstr("--subnet"));
}

TEST(SubnetFit, TheEndOfAllAddressesIsNoWayAround) {
  EXPECT_EQ(fit_subnet(block_of("255.255.255.240/28"), {}, 3).value().text(), "255.255.255.240/28");
}

}  // namespace
}  // namespace pscloud

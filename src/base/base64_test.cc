#include "base/base64.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pscloud {
namespace {

TEST(Base64, IsThatOfTheStandard) {
  // RFC 4648, section 10.
  const std::pair<const char*, const char*> vectors[] = {
      {"", ""}, {"f", "Zg=="}, {"fo", "Zm8="}, {"foo", "Zm9v"}, {"foobar", "Zm9vYmFy"}};
  for (const auto& [bytes, text] : vectors) {
    EXPECT_EQ(base64(bytes), text);
    EXPECT_EQ(parse_base64(text), bytes);
  }
  EXPECT_EQ(base64("\xfb\xff\xfe"), "+//+");
  EXPECT_EQ(base64_url("\xfb\xff\xfe"), "-__-");
  EXPECT_EQ(parse_base64("Zm9v\r\nYmFy\n"), "foobar");
}

TEST(Base64, RefusesWhatIsNone) {
  for (const char* text : {"Z", "Zg", "Zg=", "Zg===", "Zg==Zg==", "Z===", "====", "Zm9*", "Z=g="}) {
    EXPECT_EQ(parse_base64(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace pscloud

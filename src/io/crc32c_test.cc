#include "io/crc32c.h"

#include <gtest/gtest.h>

#include <vector>

namespace pscloud {
namespace {

// The check value that every catalogue of CRCs gives.
TEST(Crc32c, GivesTheCheckValue) { EXPECT_EQ(crc32c(bytes_of(std::string_view("123456789"))), 0xe3069283); }

// RFC 3720, appendix B.4.
TEST(Crc32c, GivesTheValuesOfRfc3720) {
  std::vector<std::byte> bytes(32, std::byte{0});
  EXPECT_EQ(crc32c(bytes), 0x8a9136aa);
  bytes.assign(32, std::byte{0xff});
  EXPECT_EQ(crc32c(bytes), 0x62a8ab43);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i);
  EXPECT_EQ(crc32c(bytes), 0x46dd794e);
}

TEST(Crc32c, OfNothingIsZero) { EXPECT_EQ(crc32c({}), 0u); }

}  // namespace
}  // namespace pscloud

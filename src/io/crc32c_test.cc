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

// The definition, bit by bit, for lengths and places that are no whole words.
TEST(Crc32c, IsTheRemainderOfADivision) {
  std::vector<std::byte> bytes(100);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 37 + 5);
  for (size_t begin = 0; begin < 9; ++begin) {
    for (size_t size = 0; size <= bytes.size() - begin; ++size) {
      const Bytes some = Bytes(bytes).subspan(begin, size);
      uint32_t rest = 0xffffffff;
      for (const std::byte byte : some) {
        rest ^= static_cast<uint32_t>(byte);
        for (int bit = 0; bit < 8; ++bit) rest = (rest & 1) != 0 ? rest >> 1 ^ 0x82f63b78 : rest >> 1;
      }
      ASSERT_EQ(crc32c(some), ~rest) << begin << " " << size;
    }
  }
}

TEST(Crc32c, OfNothingIsZero) { EXPECT_EQ(crc32c({}), 0u); }

}  // namespace
}  // namespace pscloud

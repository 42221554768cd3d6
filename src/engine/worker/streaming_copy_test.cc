#include "engine/worker/streaming_copy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace pscloud {
namespace {

// Each beginning within a line and each size around a few lines; bytes before and behind stay as they were.
TEST(StreamingCopy, CopiesWhatItIsGivenAndNoMore) {
  constexpr size_t kRoom = 512;
  std::vector<std::byte> from(kRoom), to(kRoom), expected(kRoom);
  for (size_t i = 0; i < kRoom; ++i) from[i] = static_cast<std::byte>(i * 7 + 1);
  for (size_t from_at = 0; from_at < 64; from_at += 5) {
    for (size_t to_at = 0; to_at < 64; to_at += 3) {
      for (const size_t size : {0, 1, 15, 63, 64, 65, 127, 128, 200, 400}) {
        std::ranges::fill(to, std::byte{0});
        std::ranges::fill(expected, std::byte{0});
        std::copy_n(from.begin() + static_cast<ptrdiff_t>(from_at), size,
                    expected.begin() + static_cast<ptrdiff_t>(to_at));
        streaming_copy(to.data() + to_at, from.data() + from_at, size);
        ASSERT_EQ(to, expected) << size << " bytes from " << from_at << " to " << to_at;
      }
    }
  }
}

}  // namespace
}  // namespace pscloud

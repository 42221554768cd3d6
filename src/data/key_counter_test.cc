#include "data/key_counter.h"

#include <gtest/gtest.h>

namespace pscloud {
namespace {

TEST(KeyCounter, IsRightWithinAFewPercent) {
  for (const uint64_t count : {0, 1, 10, 1000, 20000, 60000, 1000000}) {
    KeyCounter counter;
    for (int times = 0; times < 2; ++times) {
      for (Key key = 0; key < count; ++key) counter.add(key * 1000003);
    }
    const auto exact = static_cast<double>(count);
    EXPECT_NEAR(static_cast<double>(counter.count()), exact, 0.03 * exact) << count;
  }
}

}  // namespace
}  // namespace pscloud

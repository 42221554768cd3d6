#include "cli/bench/machine_limits.h"

#include <gtest/gtest.h>

#include <vector>

namespace pscloud {
namespace {

TEST(MachineLimits, TheAddAddsOnOneThreadAndOnTwo) {
  LimitBuffer target(1003 * sizeof(float)), source(1003 * sizeof(float));  // a length that no vector divides
  EXPECT_TRUE(all_equal(target.floats(), 1));
  EXPECT_GE(measure_add_ms(target.floats(), source.floats(), 1), 0);
  EXPECT_TRUE(all_equal(target.floats(), 2));
  EXPECT_GE(measure_add_ms(target.floats(), source.floats(), 2), 0);
  EXPECT_TRUE(all_equal(target.floats(), 3));
  EXPECT_GE(measure_copy_ms(target.floats(), source.floats()), 0);
  EXPECT_TRUE(all_equal(target.floats(), 1));
}

TEST(MachineLimits, ALineIsChangedOnceEachTime) {
  LimitBuffer memory(64 * 100);
  EXPECT_GT(measure_random_line_ns(memory.floats(), 1000, 1), 0);
  double sum = 0;
  for (const float value : memory.floats()) sum += value;
  EXPECT_EQ(sum, 1600 + 1000);
}

TEST(MachineLimits, OneWrongValueIsSeenWhereverItIs) {
  std::vector<float> values(37, 4.0f);
  EXPECT_TRUE(all_equal(values, 4));
  for (float& value : values) {
    value = 3;
    EXPECT_FALSE(all_equal(values, 4));
    value = 4;
  }
}

}  // namespace
}  // namespace pscloud

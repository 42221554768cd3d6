#include "engine/table_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace pscloud {
namespace {

TEST(TableCheck, FindsTheFirstNumberThatIsNotFiniteWhereverItIs) {
  constexpr float kMax = std::numeric_limits<float>::max();
  std::vector<float> values(3000, kMax);
  values[7] = -kMax;
  values[8] = std::numeric_limits<float>::denorm_min();
  EXPECT_EQ(first_not_finite(values), 3000u);
  EXPECT_EQ(first_not_finite({}), 0u);
  for (const size_t at : {size_t{0}, size_t{1}, size_t{1023}, size_t{1024}, size_t{2047}, size_t{2999}}) {
    for (const float bad : {NAN, -NAN, INFINITY, -INFINITY}) {
      auto damaged = values;
      damaged[at] = bad;
      damaged[2999] = NAN;
      EXPECT_EQ(first_not_finite(damaged), at);
    }
  }
}

TEST(TableCheck, KeysMustStrictlyIncrease) {
  EXPECT_TRUE(check_keys_increase({}).has_value());
  EXPECT_TRUE(check_keys_increase({{0, 1, UINT64_MAX}}).has_value());
  const std::vector<Key> same{1, 5, 5}, falls{1, 5, 4, 9};
  EXPECT_THAT(check_keys_increase(same).error().message, testing::HasSubstr("position 2 has key 5 after 5"));
  EXPECT_THAT(check_keys_increase(falls).error().message, testing::HasSubstr("position 2 has key 4 after 5"));
}

TEST(TableCheck, InitialValuesAreUniformInTheirRangeAndRepeatable) {
  const InitialValues initial{-2, 6, 1};
  std::vector<float> row(100000), again(100000), other(100000), next(100000);
  fill_initial(initial, 5, row);
  fill_initial(initial, 5, again);
  fill_initial({-2, 6, 2}, 5, other);
  fill_initial(initial, 6, next);
  EXPECT_EQ(row, again);
  EXPECT_NE(row, other);
  EXPECT_NE(row, next);
  double sum = 0, squares = 0;
  for (const float value : row) {
    ASSERT_GE(value, -2);
    ASSERT_LE(value, 6);
    sum += value;
    squares += (value - 2.0) * (value - 2.0);
  }
  const auto count = static_cast<double>(row.size());
  const double variance = 64.0 / 12;
  EXPECT_NEAR(sum / count, 2, 5 * std::sqrt(variance / count));
  EXPECT_NEAR(squares / count, variance, 0.05);
}

TEST(TableCheck, InitialValuesDifferBetweenKeysThatAreNeighbours) {
  float first[1], sum = 0;
  for (Key key = 0; key < 10000; ++key) {
    fill_initial({0, 1, 0}, key, first);
    sum += first[0];
  }
  EXPECT_NEAR(sum / 10000, 0.5, 5 * std::sqrt(1.0 / 12 / 10000));
}

TEST(TableCheck, TheWidestRangeOfInitialValuesStaysFinite) {
  constexpr float kMax = std::numeric_limits<float>::max();
  std::vector<float> row(1000);
  fill_initial({-kMax, kMax, 3}, 9, row);
  EXPECT_EQ(first_not_finite(row), row.size());
}

TEST(TableCheck, EqualEndsGiveThatVeryValue) {
  std::vector<float> row(3);
  fill_initial({0.1f, 0.1f, 9}, 1, row);
  EXPECT_EQ(row, (std::vector<float>{0.1f, 0.1f, 0.1f}));
}

}  // namespace
}  // namespace pscloud

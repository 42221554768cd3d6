#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "engine/filter/filter_testing.h"

namespace pscloud {
namespace {

std::vector<FilterSpec> fixed_point(int num_bytes) {
  return {{FilterKind::kFixedPoint, static_cast<uint8_t>(num_bytes)}};
}

TEST(FixedPoint, ExtremesAndZerosAreExact) {
  FilterEnds ends;
  for (const int num_bytes : {1, 2, 3}) {
    for (int round = 0; round < 1000; ++round) {
      const auto values = ends.pass(fixed_point(num_bytes), {-3.7f, 0, 3.7f, -0.0f, 1});
      EXPECT_EQ(values[0], -3.7f);
      EXPECT_EQ(values[1], 0);
      EXPECT_EQ(values[2], 3.7f);
      EXPECT_EQ(values[3], 0);
    }
  }
}

TEST(FixedPoint, OnlyZerosStayZeros) {
  FilterEnds ends;
  EXPECT_EQ(ends.pass(fixed_point(1), {0, 0, 0}), (std::vector<float>{0, 0, 0}));
}

TEST(FixedPoint, MeanOfManyDrawsIsTheValue) {
  // A draw lies on one of two neighbours that are `step` apart, so its deviation is at most step/2; the mean of n draws
  // is further than 5 deviations from the value once in a million.
  FilterEnds ends;
  constexpr int kDraws = 40000;
  const std::vector<float> values{1, 0.1f, -0.1f, 0.5f / 127, -0.25f / 127, 0.9999f, 0.3333f};
  std::vector<double> sums(values.size());
  for (int draw = 0; draw < kDraws; ++draw) {
    const auto coded = ends.pass(fixed_point(1), values);
    for (size_t i = 0; i < values.size(); ++i) {
      sums[i] += coded[i];
      EXPECT_LT(std::abs(coded[i] - values[i]), 1.0001 / 127);
    }
  }
  const double bound = 5 * (0.5 / 127) / std::sqrt(kDraws);
  for (size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(sums[i] / kDraws, values[i], bound) << values[i];
}

TEST(FixedPoint, PayloadHasNumBytesForEachValue) {
  FilterEnds ends;
  for (const int num_bytes : {1, 2, 3}) {
    const auto payload = ends.encode(fixed_point(num_bytes), {}, std::vector<float>(100, 1), 100);
    EXPECT_EQ((*payload)->size(), 1 + 3 + 5 + 4 + 3 + 100u * num_bytes);
  }
}

TEST(FixedPoint, TheWholeRangeOfFloatsWorks) {
  FilterEnds ends;
  const float largest = std::numeric_limits<float>::max();
  const float smallest = std::numeric_limits<float>::denorm_min();
  EXPECT_EQ(ends.pass(fixed_point(3), {largest, -largest})[1], -largest);
  EXPECT_EQ(ends.pass(fixed_point(3), {smallest, -smallest})[1], -smallest);
}

TEST(FixedPoint, ValuesThatAreNotFiniteAreRefusedByPosition) {
  FilterEnds ends;
  for (const float bad : {NAN, INFINITY, -INFINITY}) {
    const auto payload = ends.encode(fixed_point(2), {}, {1, 2, bad}, 3);
    ASSERT_FALSE(payload.has_value());
    EXPECT_EQ(payload.error().code, Code::kInvalid);
    EXPECT_THAT(payload.error().message, testing::HasSubstr("position 2"));
  }
}

TEST(FixedPoint, AnyDamageIsHarmless) {
  FilterEnds ends;
  for (const int num_bytes : {1, 2, 3})
    expect_damage_is_harmless(*ends.encode(fixed_point(num_bytes), {}, {1, -2, 0}, 3), 3, 1, false, true);
}

TEST(FixedPoint, CodeBelowTheSymmetricRangeIsCorrupt) {
  FilterEnds ends;
  const auto payload = ends.encode(fixed_point(1), {}, {-1}, 1);
  std::vector<std::byte> bytes((*payload)->span().begin(), (*payload)->span().end());
  EXPECT_EQ(bytes.back(), std::byte{0x81});  // -127
  bytes.back() = std::byte{0x80};
  EXPECT_FALSE(ends.decode(bytes, 1, 1, false, true).has_value());
}

}  // namespace
}  // namespace pscloud

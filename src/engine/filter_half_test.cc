#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "engine/filter_testing.h"

namespace pscloud {
namespace {

const std::vector<FilterSpec> kHalf{{FilterKind::kFloat16}};
const std::vector<FilterSpec> kBrain{{FilterKind::kBfloat16}};

// The value of a finite half by its definition (IEEE 754-2019, 3.4).
double half_value(uint16_t half) {
  const int exponent = half >> 10 & 31;
  const int fraction = half & 1023;
  const double magnitude = exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
  return half & 0x8000 ? -magnitude : magnitude;
}

TEST(Float16, EveryFiniteHalfIsExact) {
  FilterEnds ends;
  std::vector<float> values;
  for (uint32_t half = 0; half < 0x10000; ++half) {
    if ((half & 0x7c00) != 0x7c00) values.push_back(static_cast<float>(half_value(static_cast<uint16_t>(half))));
  }
  EXPECT_EQ(values.size(), 2u * 31 * 1024);
  const auto coded = ends.pass(kHalf, values);
  for (size_t i = 0; i < values.size(); ++i)
    ASSERT_EQ(std::bit_cast<uint32_t>(coded[i]), std::bit_cast<uint32_t>(values[i])) << values[i];
}

TEST(Float16, RoundsToTheNearestAndTiesToEven) {
  FilterEnds ends;
  for (uint16_t half = 0; half < 0x7bff; ++half) {
    const double low = half_value(half);
    const double high = half_value(static_cast<uint16_t>(half + 1));
    const auto middle = static_cast<float>((low + high) / 2);  // exact: one bit more than a half has
    const auto even = static_cast<float>(half % 2 == 0 ? low : high);
    const std::vector<float> values{middle, std::nextafter(middle, 0.0f), std::nextafter(middle, 1e9f), -middle};
    const auto coded = ends.pass(kHalf, values);
    ASSERT_EQ(coded[0], even) << half;
    ASSERT_EQ(coded[1], static_cast<float>(low)) << half;
    ASSERT_EQ(coded[2], static_cast<float>(high)) << half;
    ASSERT_EQ(coded[3], -even) << half;
  }
}

TEST(Float16, WhatItCannotHoldIsRefusedByValueAndPosition) {
  FilterEnds ends;
  EXPECT_EQ(ends.pass(kHalf, {65519.996f})[0], 65504);
  for (const float bad : {65520.0f, -1e9f, INFINITY, NAN}) {
    const auto payload = ends.encode(kHalf, {}, {0, bad}, 2);
    ASSERT_FALSE(payload.has_value()) << bad;
    EXPECT_EQ(payload.error().code, Code::kInvalid);
    EXPECT_THAT(payload.error().message, testing::HasSubstr(fmt::format("the {} at position 1", bad)));
  }
}

TEST(Bfloat16, RoundsToTheNearestAndTiesToEven) {
  FilterEnds ends;
  Random random(7);
  std::vector<float> values;
  while (values.size() < 100000) {
    const auto value = std::bit_cast<float>(static_cast<uint32_t>(random.next()));
    if (std::abs(value) < 3e38f) values.push_back(value);
  }
  const auto coded = ends.pass(kBrain, values);
  for (size_t i = 0; i < values.size(); ++i) {
    const uint32_t bits = std::bit_cast<uint32_t>(values[i]);
    const double low = std::bit_cast<float>(bits & 0xffff0000);
    const double high = std::bit_cast<float>((bits & 0xffff0000) + 0x10000);
    const double to_low = std::abs(values[i] - low);
    const double to_high = std::abs(high - values[i]);
    const bool take_high = to_low > to_high || (to_low == to_high && (bits >> 16) % 2 == 1);
    ASSERT_EQ(coded[i], static_cast<float>(take_high ? high : low)) << values[i];
  }
}

TEST(Bfloat16, WhatItCannotHoldIsRefused) {
  FilterEnds ends;
  for (const float bad : {std::numeric_limits<float>::max(), -INFINITY, NAN})
    EXPECT_FALSE(ends.encode(kBrain, {}, {bad}, 1).has_value()) << bad;
  EXPECT_EQ(ends.pass(kBrain, {3.38e38f, -0.0f})[1], 0);
}

TEST(Half, AnyDamageIsHarmless) {
  FilterEnds ends;
  for (const auto& chain : {kHalf, kBrain})
    expect_damage_is_harmless(*ends.encode(chain, {}, {1, -2, 0}, 3), 3, 1, false, true);
}

}  // namespace
}  // namespace pscloud

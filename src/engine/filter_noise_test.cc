#include <gtest/gtest.h>

#include <cmath>

#include "engine/filter_testing.h"

namespace pscloud {
namespace {

TEST(Noise, AddsDrawsOfTheMeanAndDeviationAskedForToZerosToo) {
  FilterEnds ends;
  constexpr size_t kCount = 100000;
  std::vector<float> values(kCount, 0.0f);
  for (size_t i = 0; i < kCount; i += 2) values[i] = 10;
  const auto noisy = ends.pass({{FilterKind::kNoise, 2, 1.0f, 0.5f}}, values);
  double sum = 0, squares = 0;
  for (size_t i = 0; i < kCount; ++i) {
    const double noise = noisy[i] - values[i];
    EXPECT_NE(noise, 0);
    sum += noise;
    squares += (noise - 1) * (noise - 1);
  }
  // Five deviations of the mean and of the variance of kCount normal draws.
  EXPECT_NEAR(sum / kCount, 1, 5 * 0.5 / std::sqrt(kCount));
  EXPECT_NEAR(squares / kCount, 0.25, 5 * 0.25 * std::sqrt(2.0 / kCount));
}

TEST(Noise, DiffersFromPayloadToPayloadAndRepeatsWithTheSeed) {
  const std::vector<FilterSpec> chain{{FilterKind::kNoise, 2, 0, 1}};
  FilterEnds ends, same;
  const auto first = ends.pass(chain, {0, 0});
  EXPECT_EQ(same.pass(chain, {0, 0}), first);
  EXPECT_NE(ends.pass(chain, {0, 0}), first);
}

TEST(Noise, AnyDamageIsHarmless) {
  FilterEnds ends;
  expect_damage_is_harmless(*ends.encode({{FilterKind::kNoise, 2, 0, 1}}, {}, {1, 2}, 2), 2, 1, false, true);
}

}  // namespace
}  // namespace pscloud

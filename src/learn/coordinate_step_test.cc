#include "learn/coordinate_step.h"

#include <gtest/gtest.h>

namespace pscloud {
namespace {

Coordinate stepped(double weight, double gradient, double curvature, const StepRule& rule) {
  Coordinate coordinate{weight, 1};
  step(coordinate, gradient, curvature, rule);
  return coordinate;
}

// Values of dmlc's DARLIN.
TEST(CoordinateStep, GoesToTheMinimumWithinTheTrustRegion) {
  const StepRule rule{.lambda1 = 1};
  EXPECT_NEAR(stepped(0, -3, 2, rule).weight, 1, 1e-9);
  EXPECT_NEAR(stepped(0, -3, 2, rule).delta, 2.1, 1e-9);
  EXPECT_NEAR(stepped(0, -30, 2, {.lambda1 = 10}).weight, 1, 1e-9);  // 10 without the trust region
  EXPECT_NEAR(stepped(0.5, 0.2, 4, rule).weight, 0.2, 1e-9);
  EXPECT_NEAR(stepped(0.1, 0.2, 4, rule).weight, 0, 1e-9);
  EXPECT_EQ(stepped(0, 0.2, 4, rule).weight, 0);
}

TEST(CoordinateStep, TrustRegionGrowsNoFurtherThanTold) {
  Coordinate coordinate{0, 1};
  for (int i = 0; i < 10; ++i) step(coordinate, -1000, 1, {.delta_max = 3});
  EXPECT_EQ(coordinate.delta, 3);
}

TEST(CoordinateStep, SquaredPenaltyPullsToZero) {
  // 4 w^2 / 2 + 2 w^2 / 2 - 3 w is least at 0.5.
  EXPECT_NEAR(stepped(0, -3, 4, {.lambda2 = 2}).weight, 0.5, 1e-9);
  EXPECT_NEAR(stepped(0.5, -3 + 4 * 0.5, 4, {.lambda2 = 2}).weight, 0.5, 1e-9);
}

TEST(CoordinateStep, RateShortensTheStep) { EXPECT_NEAR(stepped(0, -3, 4, {.rate = 0.5}).weight, 3.0 / 8, 1e-9); }

TEST(CoordinateStep, PullFromZeroIsWhatThePenaltyDoesNotHold) {
  EXPECT_EQ(pull_from_zero(-3, {.lambda1 = 1}), 2);
  EXPECT_EQ(pull_from_zero(0.25, {.lambda1 = 1}), -0.75);
}

}  // namespace
}  // namespace pscloud

#include "learn/joint_step.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"

namespace pscloud {
namespace {

// A quadratic of `size` weights that go together: the matrix is that of random vectors, some of them much alike.
struct Quadratic {
  std::vector<Coordinate> coordinates;
  std::vector<float> gradient;
  std::vector<float> curvature;

  explicit Quadratic(size_t size) {
    Random random(3);
    std::vector<std::vector<float>> vectors;
    for (size_t i = 0; i < size; ++i) {
      std::vector<float>& one = vectors.emplace_back();
      for (size_t k = 0; k < 2 * size; ++k) {
        one.push_back(random.normal(0, 1) + (i % 2 == 0 || k == 0 ? 0 : vectors[i - 1][k]));
      }
      for (size_t j = 0; j <= i; ++j) {
        float product = 0;
        for (size_t k = 0; k < one.size(); ++k) product += one[k] * vectors[j][k];
        curvature.push_back(product);
      }
      coordinates.push_back({random.chance(0.5) ? 0 : random.normal(0, 1), 100});
      gradient.push_back(random.normal(0, 50));
    }
  }

  // By weight i, where the weights have changed so.
  double slope(size_t i, std::span<const double> changes, const StepRule& rule) const {
    double sum = gradient[i] + rule.lambda2 * (coordinates[i].weight + changes[i]);
    for (size_t j = 0; j < changes.size(); ++j) {
      sum += changes[j] * curvature[JointStep::triangle(std::max(i, j)) + std::min(i, j)] / rule.rate;
    }
    return sum;
  }
};

TEST(JointStep, NoWeightWantsToMoveWhereItEnds) {
  for (const StepRule& rule :
       {StepRule{}, StepRule{.lambda1 = 30}, StepRule{.lambda1 = 10, .lambda2 = 5, .rate = 0.5}}) {
    const Quadratic quadratic(30);
    JointStep step(rule);
    const std::span<const double> changes = step.find(quadratic.coordinates, quadratic.gradient, quadratic.curvature);
    for (size_t i = 0; i < changes.size(); ++i) {
      const double w = quadratic.coordinates[i].weight + changes[i];
      const double slope = quadratic.slope(i, changes, rule);
      if (w == 0) {
        EXPECT_LE(std::abs(slope), rule.lambda1 + 0.5) << i;
      } else {
        EXPECT_NEAR(slope + std::copysign(rule.lambda1, w), 0, 0.5) << i;
      }
    }
  }
}

TEST(JointStep, StaysWithinTheTrustRegion) {
  Quadratic quadratic(30);
  for (Coordinate& coordinate : quadratic.coordinates) coordinate.delta = 0.1;
  JointStep step({.lambda1 = 1});
  int at_the_border = 0;
  for (const double change : step.find(quadratic.coordinates, quadratic.gradient, quadratic.curvature)) {
    EXPECT_LE(std::abs(change), 0.1);
    at_the_border += std::abs(change) == 0.1 ? 1 : 0;
  }
  EXPECT_GT(at_the_border, 0);
}

TEST(JointStep, AWeightThatBendsNothingGoesToTheBorderOrToZero) {
  JointStep step({.lambda1 = 1});
  const std::vector<Coordinate> coordinates = {{0, 0.5}, {0.25, 0.5}};
  const std::vector<float> gradient = {3, 0.5f};
  const std::span<const double> changes = step.find(coordinates, gradient, std::vector<float>(3));
  EXPECT_EQ(changes[0], -0.5);
  EXPECT_EQ(changes[1], -0.25);
}

}  // namespace
}  // namespace pscloud

#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "learn/coordinate_step.h"

namespace pscloud {

// Several weights that move together: where of each other they know how they bend the loss.
class JointStep {
 public:
  explicit JointStep(const StepRule& rule) : rule_(rule) {}

  // How many numbers describe how `weights` bend the loss together: the lower triangle of a matrix, row by row.
  static size_t triangle(size_t weights) { return weights * (weights + 1) / 2; }

  // To the minimum of gradient * d + d * curvature * d / 2 plus the penalties, each |d| within its trust region: how
  // far each weight goes. The same bits everywhere for the same numbers.
  std::span<const double> find(std::span<const Coordinate> coordinates, std::span<const float> gradient,
                               std::span<const float> curvature);

 private:
  double sweep(std::span<const Coordinate> coordinates);

  const StepRule rule_;
  std::vector<double> matrix_;  // all of it
  std::vector<double> slopes_;  // of the model, where the weights have come to
  std::vector<double> changes_;
};

}  // namespace pscloud

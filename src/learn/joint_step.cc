#include "learn/joint_step.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace pscloud {
namespace {

constexpr int kSweepsMax = 1000;
constexpr double kEnough = 1e-7;  // of what the first sweep gained, in one sweep

}  // namespace

std::span<const double> JointStep::find(std::span<const Coordinate> coordinates, std::span<const float> gradient,
                                        std::span<const float> curvature) {
  const size_t size = coordinates.size();
  CHECK(gradient.size() == size && curvature.size() == triangle(size), "{} weights, {} of gradient, {} of curvature",
        size, gradient.size(), curvature.size());
  matrix_.resize(size * size);
  for (size_t i = 0, at = 0; i < size; ++i) {
    for (size_t j = 0; j <= i; ++j, ++at) matrix_[i * size + j] = matrix_[j * size + i] = curvature[at] / rule_.rate;
    matrix_[i * size + i] += rule_.lambda2 + 1e-10;
  }
  slopes_.resize(size);
  for (size_t i = 0; i < size; ++i) slopes_[i] = gradient[i] + rule_.lambda2 * coordinates[i].weight;
  changes_.assign(size, 0);
  const double first = sweep(coordinates);
  for (int i = 1; i < kSweepsMax; ++i) {
    if (sweep(coordinates) <= kEnough * first) break;
  }
  return changes_;
}

// Each weight once to where it is best for itself. Returns about what that gained.
double JointStep::sweep(std::span<const Coordinate> coordinates) {
  const size_t size = coordinates.size();
  double gain = 0;
  for (size_t i = 0; i < size; ++i) {
    const double* const line = &matrix_[i * size];
    const double bend = line[i];
    const double w = coordinates[i].weight + changes_[i];
    const double target = best_weight(w, slopes_[i], bend, rule_.lambda1);
    const double change = std::clamp(target - coordinates[i].weight, -coordinates[i].delta, coordinates[i].delta);
    const double d = change - changes_[i];
    if (d == 0) continue;
    changes_[i] = change;
    for (size_t j = 0; j < size; ++j) slopes_[j] += d * line[j];
    gain += bend * d * d;
  }
  return gain;
}

}  // namespace pscloud

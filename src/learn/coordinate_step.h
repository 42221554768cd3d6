#pragma once

#include <algorithm>
#include <cmath>

namespace pscloud {

// What batch training minimises beside the loss: lambda1 * |w| + lambda2 / 2 * w^2 of each weight.
struct StepRule {
  double lambda1 = 0;
  double lambda2 = 0;
  double rate = 1;       // how much of the way to the minimum of the model of the loss to go: 1 is all of it
  double delta_max = 5;  // the trust region never grows beyond it
};

// One weight, and how far it may move at a time.
struct Coordinate {
  double weight = 0;
  double delta = 1;
};

// Where w must go so that gradient * d + curvature / 2 * d^2 + lambda1 * |w + d| is least.
inline double best_weight(double w, double gradient, double curvature, double lambda1) {
  if (gradient + lambda1 <= curvature * w) return w - (gradient + lambda1) / curvature;
  if (gradient - lambda1 >= curvature * w) return w - (gradient - lambda1) / curvature;
  return 0;
}

// A step of a weight to the minimum of gradient * d + curvature / 2 * d^2 plus the penalty, within its trust region.
inline void step(Coordinate& coordinate, double gradient, double curvature, const StepRule& rule) {
  const double w = coordinate.weight;
  const double g = gradient + rule.lambda2 * w;
  const double u = curvature / rule.rate + rule.lambda2 + 1e-10;
  const double d = std::clamp(best_weight(w, g, u, rule.lambda1) - w, -coordinate.delta, coordinate.delta);
  coordinate.delta = std::min(rule.delta_max, 2 * std::abs(d) + 0.1);
  coordinate.weight = w + d;
}

// By how much a weight at zero wants to leave it; less than zero: how firmly it stays.
inline double pull_from_zero(double gradient, const StepRule& rule) { return std::abs(gradient) - rule.lambda1; }

}  // namespace pscloud

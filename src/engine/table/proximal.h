#pragma once

#include <cmath>

namespace pscloud {

// What a step to `value` comes to with a penalty of lambda1*|w| + lambda2/2*w^2: the w that makes the least of that
// penalty and (w - value)^2 / (2*rate).
inline float proximal(float value, float rate, float lambda1, float lambda2) {
  const float threshold = lambda1 * rate;
  const float shrunk = (value - std::copysign(threshold, value)) / (1 + lambda2 * rate);
  return std::abs(value) <= threshold ? 0.0f : shrunk;
}

}  // namespace pscloud

#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

namespace pscloud {

// exp(x), right to about 1e-7 of it, in a form that compilers vectorise within a loop; of |x| above 80 that of 80. It
// is 2^n * e^r, where |r| is at most ln(2) / 2; coefficients as in Cephes' expf.
inline float vector_exp(float x) {
  x = std::min(80.0f, std::max(-80.0f, x));
  constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: adding it leaves no bits behind the point
  const float n = (x * 1.44269504f + kRound) - kRound;
  const float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  return p * std::bit_cast<float>((static_cast<int32_t>(n) + 127) << 23);
}

}  // namespace pscloud

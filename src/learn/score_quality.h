#pragma once

#include <bit>
#include <cstdint>
#include <span>

namespace pscloud {

// A whole number that is the larger, the larger the score is. Not for what is no number.
inline uint32_t ordered_bits(float score) {
  const auto bits = std::bit_cast<uint32_t>(score + 0.0f);  // -0 is 0
  return (bits >> 31) != 0 ? ~bits : bits | 0x80000000;
}

// How well scores tell examples with a label above 0 from the others.

// The chance that one of the first has a higher score than one of the others; equal scores count half. 0.5 if there are
// none of either kind.
double auc(std::span<const float> labels, std::span<const float> scores);

// How many scores have the sign of their label; 0 is that of the others.
uint64_t count_right(std::span<const float> labels, std::span<const float> scores);

}  // namespace pscloud

#pragma once

#include <span>

namespace pscloud {

// The logistic loss log(1 + exp(-margin)) of many examples at once; a margin is the label, 1 or -1, times the score. In
// loops that the compiler vectorises, with the precision of float.

// Of each margin 1 / (1 + exp(margin)), the slope of its loss without the sign. `out` may be `margins`.
void miss_chances(std::span<const float> margins, std::span<float> out);

// The sum of the losses.
double logistic_loss(std::span<const float> margins);

}  // namespace pscloud

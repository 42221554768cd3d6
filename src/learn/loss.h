#pragma once

#include <span>

namespace pscloud {

// What a model pays for its score of an example with label y; t is y times the score.
//   logit         log(1 + exp(-t))
//   hinge         max(0, 1 - t)
//   square hinge  max(0, 1 - t)^2
//   square        (score - y)^2 / 2
// Of all but the last a label above 0 means 1 and any other -1: data with 0 and 1 train as those with -1 and 1 do.
enum class Loss { kSquare, kLogit, kHinge, kSquareHinge };

// The sum over all examples; `slopes` gets the derivative of each by its score. All of the same size; `slopes` may be
// `scores`.
double loss_and_slopes(Loss loss, std::span<const float> labels, std::span<const float> scores,
                       std::span<float> slopes);

}  // namespace pscloud

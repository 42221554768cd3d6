#pragma once

#include <cstddef>
#include <span>

#include "learn/coordinate_step.h"
#include "pscloud/types.h"

namespace pscloud {

struct DescentOptions {
  StepRule rule;
  double delta = 1;  // trust region of a first step
};

// One worker's examples, and the weights of their features on the way to the minimum. How they go is for each kind to
// say; this is what batch training tells and saves of it.
class Descent {
 public:
  virtual ~Descent() = default;

  virtual size_t examples() const = 0;
  virtual double loss() const = 0;                // sum over the examples
  virtual std::span<const Key> keys() const = 0;  // of each column
  virtual double weight(size_t column) const = 0;
  virtual bool is_active(size_t column) const = 0;  // it is not resting at zero

  // Of all columns; whatever was learned before counts no more.
  virtual void set_weights(std::span<const float> weights) = 0;
};

}  // namespace pscloud

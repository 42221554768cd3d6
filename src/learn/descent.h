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

  // All that a later iteration depends on, of a column and of a row. What a kind of descent has not is zero.
  struct ColumnState {
    double weight = 0;
    double delta = 0;
    double earlier = 0;  // weight, an iteration before
    bool active = true;
  };
  struct RowState {
    double score = 0;
    double earlier = 0;
    float slope = 0;  // of the loss
  };
  virtual ColumnState column_state(size_t column) const = 0;
  virtual RowState row_state(size_t row) const = 0;
  virtual void set_column_state(size_t column, const ColumnState& state) = 0;
  virtual void set_row_state(size_t row, const RowState& state) = 0;
};

}  // namespace pscloud

#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>

#include "pscloud/error.h"
#include "pscloud/table.h"

namespace pscloud {

// How a server changes a row when a worker pushes to it. Stateless and const: what it must remember of a row
// stands in the row's state. Called by the thread that owns the row, never by two at once for one row.
class Updater {
 public:
  virtual ~Updater() = default;

  // Floats kept beside the `width` values of each row; zero when the row is made.
  virtual size_t state_width(size_t width) const {
    (void)width;
    return 0;
  }

  // One row: `value` and `pushed` have `width` floats, `state` has state_width(width).
  virtual void update(std::span<float> value, std::span<float> state, std::span<const float> pushed) const = 0;

  // What stands beside `value` when it is set from outside, as from a model: such that updates go on from it.
  virtual void state_of(std::span<const float> value, std::span<float> state) const;

  // Many rows that lie one after the other; the built-in updaters do these in one loop.
  virtual void update_rows(float* values, float* states, const float* pushed, size_t rows, size_t width) const;
};

// Makes an Updater from its numbers; kInvalid names a number that is missing, unknown or out of range.
using UpdaterMaker = std::function<Result<std::unique_ptr<Updater>>(const UpdaterSpec& spec)>;

// The updaters a server knows, by name. Built in, with their numbers and defaults:
//   add, assign
//   sgd      learning_rate 0.01, lambda1 0, lambda2 0
//   adagrad  learning_rate 0.01, epsilon 1e-8, lambda1 0, lambda2 0
//   adam     learning_rate 0.001, beta1 0.9, beta2 0.999, epsilon 1e-8
//   ftrl     alpha 0.1, beta 1, lambda1 0, lambda2 0, decay 1
// The penalty is lambda1 * |w| + lambda2 / 2 * w^2 for each weight. With a decay of 0 ftrl's rate stays alpha / beta.
class UpdaterCatalog {
 public:
  UpdaterCatalog();  // with the built-in ones

  // Adds one of your own, on every server, before it starts; a second of the same name takes its place.
  void add(const std::string& name, UpdaterMaker maker) { makers_[name] = std::move(maker); }

  // kNotFound lists the names there are.
  Result<std::unique_ptr<Updater>> make(const UpdaterSpec& spec) const;

 private:
  std::map<std::string, UpdaterMaker> makers_;
};

}  // namespace pscloud

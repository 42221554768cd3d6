#pragma once

#include <initializer_list>
#include <memory>
#include <string_view>
#include <vector>

#include "pscloud/error.h"
#include "pscloud/updater.h"

namespace pscloud {

// The makers of the built-in updaters, and how each reads its numbers.

enum class NumberRange { kPositive, kNotNegative, kFraction };  // kFraction: 0 <= x < 1

struct NumberRule {
  std::string_view name;
  float fallback;
  NumberRange range;
};

// The numbers in the order of `rules`, fallbacks where the spec says nothing. kInvalid names a number that is unknown
// (and those that are known), given twice or out of range.
Result<std::vector<float>> read_numbers(const UpdaterSpec& spec, std::initializer_list<NumberRule> rules);

Result<std::unique_ptr<Updater>> make_add(const UpdaterSpec& spec);
Result<std::unique_ptr<Updater>> make_assign(const UpdaterSpec& spec);
Result<std::unique_ptr<Updater>> make_sgd(const UpdaterSpec& spec);
Result<std::unique_ptr<Updater>> make_adagrad(const UpdaterSpec& spec);
Result<std::unique_ptr<Updater>> make_adam(const UpdaterSpec& spec);
Result<std::unique_ptr<Updater>> make_ftrl(const UpdaterSpec& spec);

// The built-in updaters are written for many rows; one row is a run of one.
class RunUpdater : public Updater {
 public:
  void update(std::span<float> value, std::span<float> state, std::span<const float> pushed) const final {
    update_rows(value.data(), state.data(), pushed.data(), 1, value.size());
  }
  void update_rows(float* values, float* states, const float* pushed, size_t rows, size_t width) const override = 0;
};

}  // namespace pscloud

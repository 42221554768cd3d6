#include "pscloud/updater.h"

#include <algorithm>
#include <cmath>

#include "engine/table/updater_builtin.h"

namespace pscloud {
namespace {

bool is_within(float number, NumberRange range) {
  if (!std::isfinite(number)) return false;
  switch (range) {
    case NumberRange::kPositive: return number > 0;
    case NumberRange::kNotNegative: return number >= 0;
    case NumberRange::kFraction: return number >= 0 && number < 1;
  }
  return false;
}

std::string_view range_text(NumberRange range) {
  switch (range) {
    case NumberRange::kPositive: return "above 0";
    case NumberRange::kNotNegative: return "0 or more";
    case NumberRange::kFraction: return "0 or more and below 1";
  }
  return "";
}

std::string names_of(std::initializer_list<NumberRule> rules) {
  if (rules.size() == 0) return "it has none";
  std::string names = "it has";
  for (const NumberRule& rule : rules) names += fmt::format(" {}", rule.name);
  return names;
}

}  // namespace

Result<std::vector<float>> read_numbers(const UpdaterSpec& spec, std::initializer_list<NumberRule> rules) {
  std::vector<float> numbers;
  for (const NumberRule& rule : rules) numbers.push_back(rule.fallback);
  std::vector<bool> given(rules.size());
  for (const auto& [name, number] : spec.numbers) {
    const auto* rule = std::find_if(rules.begin(), rules.end(), [&](const NumberRule& r) { return r.name == name; });
    if (rule == rules.end()) return invalid("updater {} has no number called {}; {}", spec.name, name, names_of(rules));
    const auto i = static_cast<size_t>(rule - rules.begin());
    if (given[i]) return invalid("updater {} was given {} twice", spec.name, name);
    if (!is_within(number, rule->range))
      return invalid("{} of updater {} is {}, must be {}", name, spec.name, number, range_text(rule->range));
    numbers[i] = number;
    given[i] = true;
  }
  return numbers;
}

void Updater::state_of(std::span<const float>, std::span<float> state) const { std::ranges::fill(state, 0.0f); }

void Updater::update_rows(float* values, float* states, const float* pushed, size_t rows, size_t width) const {
  const size_t state_floats = state_width(width);
  for (size_t row = 0; row < rows; ++row) {
    update({values + row * width, width}, {states + row * state_floats, state_floats}, {pushed + row * width, width});
  }
}

UpdaterCatalog::UpdaterCatalog() {
  add("add", make_add);
  add("assign", make_assign);
  add("sgd", make_sgd);
  add("adagrad", make_adagrad);
  add("adam", make_adam);
  add("ftrl", make_ftrl);
}

Result<std::unique_ptr<Updater>> UpdaterCatalog::make(const UpdaterSpec& spec) const {
  const auto found = makers_.find(spec.name);
  if (found != makers_.end()) return found->second(spec);
  std::string names;
  for (const auto& [name, maker] : makers_) names += fmt::format(" {}", name);
  return not_found("there is no updater called {}; this server knows{}", spec.name, names);
}

}  // namespace pscloud

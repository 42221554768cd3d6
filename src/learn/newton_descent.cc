#include "learn/newton_descent.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "learn/logistic.h"

namespace pscloud {
namespace {

// So that model() finds pairs of columns in one triangle.
void sort_rows(RowMatrix& matrix) {
  size_t begin = 0;
  std::vector<std::pair<uint16_t, float>> entries;
  for (const size_t end : matrix.ends) {
    const auto columns = std::span(matrix.columns).subspan(begin, end - begin);
    if (!std::ranges::is_sorted(columns)) {
      entries.clear();
      for (size_t i = begin; i < end; ++i) {
        entries.emplace_back(matrix.columns[i], matrix.values.empty() ? 1.0f : matrix.values[i]);
      }
      std::ranges::sort(entries);
      for (size_t i = begin; i < end; ++i) {
        matrix.columns[i] = entries[i - begin].first;
        if (!matrix.values.empty()) matrix.values[i] = entries[i - begin].second;
      }
    }
    begin = end;
  }
}

RowMatrix sorted(RowMatrix matrix) {
  sort_rows(matrix);
  return matrix;
}

// A key that an example has twice counts twice; of its own curvature a part is missing, which makes a step too long,
// and trials() find that.
template <class ValueOf>
void add_rows(const RowMatrix& matrix, ValueOf value_of, std::span<const float> labels, std::span<const float> misses,
              double* gradient, float* triangle) {
  size_t begin = 0;
  for (size_t row = 0; row < labels.size(); ++row) {
    const float slope = -labels[row] * misses[row];
    const float bend = misses[row] * (1 - misses[row]);
    const size_t end = matrix.ends[row];
    for (size_t i = begin; i < end; ++i) {
      const size_t column = matrix.columns[i];
      const float x = value_of(i);
      gradient[column] += slope * x;
      float* const line = triangle + JointStep::triangle(column);
      const float bend_x = bend * x;
      for (size_t j = begin; j <= i; ++j) line[matrix.columns[j]] += bend_x * value_of(j);
    }
    begin = end;
  }
}

}  // namespace

NewtonDescent::NewtonDescent(std::vector<Key> keys, RowMatrix matrix, std::span<const float> labels,
                             const DescentOptions& options)
    : keys_(std::move(keys)), matrix_(sorted(std::move(matrix))), options_(options), joint_(options.rule) {
  CHECK(keys_.size() <= kColumnsMax, "{} columns", keys_.size());
  CHECK(matrix_.ends.size() == labels.size(), "{} rows, {} labels", matrix_.ends.size(), labels.size());
  for (const float label : labels) labels_.push_back(label > 0 ? 1.0f : -1.0f);
  coordinates_.assign(keys_.size(), {0, options_.delta});
  changes_.assign(keys_.size(), 0);
  margins_.assign(labels.size(), 0);
  misses_.assign(labels.size(), 0.5f);
  margin_changes_.assign(labels.size(), 0);
}

void NewtonDescent::set_weights(std::span<const float> weights) {
  for (size_t i = 0; i < weights.size(); ++i) {
    changes_[i] = weights[i] - coordinates_[i].weight;
    coordinates_[i] = {weights[i], options_.delta};
  }
  find_margin_changes();
  go(1);
}

Descent::ColumnState NewtonDescent::column_state(size_t column) const {
  return {coordinates_[column].weight, coordinates_[column].delta, 0, true};
}

// A score is told as the margin it makes.
Descent::RowState NewtonDescent::row_state(size_t row) const { return {margins_[row], 0, misses_[row]}; }

void NewtonDescent::set_column_state(size_t column, const ColumnState& state) {
  coordinates_[column] = {state.weight, state.delta};
}

void NewtonDescent::set_row_state(size_t row, const RowState& state) {
  margins_[row] = state.score;
  misses_[row] = state.slope;
}

void NewtonDescent::model(std::span<float> out) const {
  CHECK(out.size() == model_size(), "{} floats for {}", out.size(), model_size());
  std::ranges::fill(out, 0.0f);
  std::vector<double> gradient(keys_.size());
  float* const triangle = out.data() + keys_.size();
  if (matrix_.values.empty()) {
    add_rows(
        matrix_, [](size_t) { return 1.0f; }, labels_, misses_, gradient.data(), triangle);
  } else {
    add_rows(
        matrix_, [&](size_t i) { return matrix_.values[i]; }, labels_, misses_, gradient.data(), triangle);
  }
  for (size_t i = 0; i < gradient.size(); ++i) out[i] = static_cast<float>(gradient[i]);
}

void NewtonDescent::propose(std::span<const float> sums) {
  const std::span<const double> found = joint_.find(coordinates_, sums.first(keys_.size()), sums.subspan(keys_.size()));
  std::ranges::copy(found, changes_.begin());
  find_margin_changes();
}

void NewtonDescent::find_margin_changes() {
  size_t begin = 0;
  for (size_t row = 0; row < labels_.size(); ++row) {
    double change = 0;
    const size_t end = matrix_.ends[row];
    for (size_t i = begin; i < end; ++i) {
      change += changes_[matrix_.columns[i]] * (matrix_.values.empty() ? 1.0f : matrix_.values[i]);
    }
    margin_changes_[row] = labels_[row] * change;
    begin = end;
  }
}

void NewtonDescent::trials(std::span<float, kShares.size()> out) const {
  const double now = loss();
  for (size_t i = 0; i < kShares.size(); ++i) out[i] = static_cast<float>(loss_at(kShares[i]) - now);
}

void NewtonDescent::move(std::span<const float, kShares.size()> sums) {
  double best = 0;
  double least = 0;
  for (size_t i = 0; i < kShares.size(); ++i) {
    const double change = sums[i] + penalty_change(kShares[i]);
    if (!(change < least)) continue;
    least = change;
    best = kShares[i];
  }
  for (size_t i = 0; i < coordinates_.size(); ++i) {
    Coordinate& coordinate = coordinates_[i];
    const double change = best * changes_[i];
    coordinate.weight += change;
    // Not below the first one, as for blocks: here trials() say what goes too far.
    coordinate.delta = std::min(options_.rule.delta_max, std::max(options_.delta, 2 * std::abs(change)));
  }
  go(best);
}

double NewtonDescent::penalty_change(double share) const {
  double sum = 0;
  for (size_t i = 0; i < coordinates_.size(); ++i) {
    const double before = coordinates_[i].weight;
    const double after = before + share * changes_[i];
    sum += options_.rule.lambda1 * (std::abs(after) - std::abs(before)) +
           options_.rule.lambda2 / 2 * (after * after - before * before);
  }
  return sum;
}

double NewtonDescent::loss_at(double share) const {
  std::array<float, 512> margins;
  double sum = 0;
  for (size_t first = 0; first < margins_.size(); first += margins.size()) {
    const size_t count = std::min(margins.size(), margins_.size() - first);
    for (size_t i = 0; i < count; ++i) {
      margins[i] = static_cast<float>(margins_[first + i] + share * margin_changes_[first + i]);
    }
    sum += logistic_loss(std::span(margins).first(count));
  }
  return sum;
}

// Makes this share of the proposed step, as far as rows are concerned.
void NewtonDescent::go(double share) {
  for (size_t row = 0; row < margins_.size(); ++row) {
    margins_[row] += share * margin_changes_[row];
    misses_[row] = static_cast<float>(margins_[row]);
  }
  miss_chances(misses_, misses_);
}

}  // namespace pscloud

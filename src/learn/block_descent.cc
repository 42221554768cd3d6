#include "learn/block_descent.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "base/vector_clones.h"
#include "learn/logistic.h"
#include "learn/vector_exp.h"

namespace pscloud {
namespace {

constexpr float kCurvatureMax = 0.25f;  // of the logistic loss
constexpr size_t kRowsAtATime = 512;
constexpr size_t kLanes = 8;

// How the loss of some rows changes with the weight of a column: its first two derivatives, the second a bound of it
// within the trust region.
struct LossShape {
  double gradient = 0;
  double curvature = 0;
};

// Sums in lanes are apart, so that they can be made at once.
struct Lanes {
  std::array<double, kLanes> sums{};

  double sum() const { return std::accumulate(sums.begin(), sums.end(), 0.0); }
};

constexpr size_t whole_lanes(size_t count) { return (count + kLanes - 1) / kLanes * kLanes; }

// Of a column that has only ones.
PSCLOUD_VECTOR_CLONES
LossShape shape_of_ones(const uint32_t* rows, size_t count, const float* slopes, float growth) {
  Lanes gradient;
  Lanes curvature;
  std::array<float, kRowsAtATime> slope;
  for (size_t first = 0; first < count; first += kRowsAtATime) {
    const size_t size = std::min(kRowsAtATime, count - first);
    for (size_t k = 0; k < size; ++k) slope[k] = slopes[rows[first + k]];
    for (size_t k = size; k < whole_lanes(size); ++k) slope[k] = 0;
    for (size_t k = 0; k < size; k += kLanes) {
      for (size_t lane = 0; lane < kLanes; ++lane) {
        const float p = std::abs(slope[k + lane]);
        gradient.sums[lane] += slope[k + lane];
        curvature.sums[lane] += std::min(kCurvatureMax, p * (1 - p) * growth);
      }
    }
  }
  return {gradient.sum(), curvature.sum()};
}

PSCLOUD_VECTOR_CLONES
LossShape shape_of_values(const uint32_t* rows, const float* values, size_t count, const float* slopes, float delta) {
  Lanes gradient;
  Lanes curvature;
  std::array<float, kRowsAtATime> slope;
  std::array<float, kRowsAtATime> bend;
  for (size_t first = 0; first < count; first += kRowsAtATime) {
    const size_t size = std::min(kRowsAtATime, count - first);
    for (size_t k = 0; k < size; ++k) slope[k] = slopes[rows[first + k]];
    for (size_t k = 0; k < size; ++k) {
      const float x = values[first + k];
      const float p = std::abs(slope[k]);
      bend[k] = std::min(kCurvatureMax, p * (1 - p) * vector_exp(std::abs(x) * delta)) * x * x;
      slope[k] *= x;
    }
    for (size_t k = size; k < whole_lanes(size); ++k) slope[k] = bend[k] = 0;
    for (size_t k = 0; k < size; k += kLanes) {
      for (size_t lane = 0; lane < kLanes; ++lane) {
        gradient.sums[lane] += slope[k + lane];
        curvature.sums[lane] += bend[k + lane];
      }
    }
  }
  return {gradient.sum(), curvature.sum()};
}

bool all_ones(std::span<const float> values) {
  return std::ranges::all_of(values, [](float value) { return value == 1; });
}

}  // namespace

BlockDescent::BlockDescent(ColumnMatrix matrix, std::span<const float> labels, std::vector<size_t> block_ends,
                           const DescentOptions& options)
    : matrix_(std::move(matrix)), block_ends_(std::move(block_ends)), options_(options) {
  CHECK(block_ends_.empty() ? matrix_.columns() == 0 : block_ends_.back() == matrix_.columns(), "blocks end elsewhere");
  for (const float label : labels) slopes_.push_back(label > 0 ? -0.5f : 0.5f);
  scores_.assign(labels.size(), 0);
  coordinates_.assign(matrix_.columns(), {0, options_.delta});
  active_.assign(matrix_.columns(), 1);
  for (size_t column = 0; column < matrix_.columns(); ++column) ones_.push_back(all_ones(matrix_.values_of(column)));
  measure_crowding();
}

// The columns of a block move at once. The loss of an example bends by no more than the sum of what each of its columns
// bends it, times how many they are (Cauchy and Schwarz): with that the steps of a block do not overshoot together.
void BlockDescent::measure_crowding() {
  crowding_.assign(matrix_.columns(), 1);
  std::vector<uint32_t> counts(scores_.size());
  size_t first = 0;
  for (const size_t end : block_ends_) {
    for (size_t column = first; column < end; ++column) {
      for (const uint32_t row : matrix_.rows_of(column)) ++counts[row];
    }
    for (size_t column = first; column < end; ++column) {
      uint64_t sum = 0;
      for (const uint32_t row : matrix_.rows_of(column)) sum += counts[row];
      const size_t entries = matrix_.rows_of(column).size();
      if (entries > 0) crowding_[column] = static_cast<float>(static_cast<double>(sum) / static_cast<double>(entries));
    }
    for (size_t column = first; column < end; ++column) {
      for (const uint32_t row : matrix_.rows_of(column)) counts[row] = 0;
    }
    first = end;
  }
}

void BlockDescent::set_weights(std::span<const float> weights) {
  for (size_t column = 0; column < weights.size(); ++column) {
    const double change = weights[column] - coordinates_[column].weight;
    coordinates_[column] = {weights[column], options_.delta};
    if (change != 0) move(column, change);
  }
  activate_all();
}

std::vector<uint32_t> BlockDescent::active_columns(size_t block) const {
  std::vector<uint32_t> columns;
  for (size_t column = block == 0 ? 0 : block_ends_[block - 1]; column < block_ends_[block]; ++column) {
    if (active_[column] != 0) columns.push_back(static_cast<uint32_t>(column));
  }
  return columns;
}

void BlockDescent::gradient(std::span<const uint32_t> columns, std::span<float> out, size_t together) const {
  for (size_t i = 0; i < columns.size(); ++i) {
    const std::span<const uint32_t> rows = matrix_.rows_of(columns[i]);
    const std::span<const float> values = matrix_.values_of(columns[i]);
    const double delta = coordinates_[columns[i]].delta;
    const LossShape shape =
        ones_[columns[i]] != 0
            ? shape_of_ones(rows.data(), rows.size(), slopes_.data(), static_cast<float>(std::exp(delta)))
            : shape_of_values(rows.data(), values.data(), rows.size(), slopes_.data(), static_cast<float>(delta));
    out[2 * i] = static_cast<float>(shape.gradient);
    out[2 * i + 1] = static_cast<float>(shape.curvature * crowding_[columns[i]] * static_cast<double>(together));
  }
}

void BlockDescent::update(std::span<const uint32_t> columns, std::span<const float> sums, double threshold) {
  for (size_t i = 0; i < columns.size(); ++i) {
    Coordinate& coordinate = coordinates_[columns[i]];
    const double before = coordinate.weight;
    if (before == 0) {
      const double pull = pull_from_zero(sums[2 * i], options_.rule);
      if (pull < -threshold) {
        active_[columns[i]] = 0;
        continue;
      }
      violation_ = std::max(violation_, pull);
    }
    step(coordinate, sums[2 * i], sums[2 * i + 1], options_.rule);
    if (coordinate.weight != before) move(columns[i], coordinate.weight - before);
  }
}

void BlockDescent::move(size_t column, double change) {
  const std::span<const uint32_t> all_rows = matrix_.rows_of(column);
  const std::span<const float> values = matrix_.values_of(column);
  std::array<float, kRowsAtATime> margins;
  for (size_t first = 0; first < all_rows.size(); first += kRowsAtATime) {
    const std::span<const uint32_t> rows = all_rows.subspan(first, std::min(kRowsAtATime, all_rows.size() - first));
    for (size_t k = 0; k < rows.size(); ++k) {
      double& score = scores_[rows[k]];
      score += change * (values.empty() ? 1.0f : values[first + k]);
      margins[k] = static_cast<float>(slopes_[rows[k]] < 0 ? score : -score);
    }
    miss_chances(std::span(margins).first(rows.size()), std::span(margins).first(rows.size()));
    for (size_t k = 0; k < rows.size(); ++k) {
      float& slope = slopes_[rows[k]];
      slope = std::copysign(margins[k], slope);
    }
  }
}

void BlockDescent::extrapolate(double share) {
  earlier_weights_.resize(coordinates_.size());
  earlier_scores_.resize(scores_.size());
  for (size_t column = 0; column < coordinates_.size(); ++column) {
    const double weight = coordinates_[column].weight;
    coordinates_[column].weight += share * (weight - std::exchange(earlier_weights_[column], weight));
  }
  std::array<float, kRowsAtATime> margins;
  for (size_t first = 0; first < scores_.size(); first += kRowsAtATime) {
    const size_t count = std::min(kRowsAtATime, scores_.size() - first);
    for (size_t k = 0; k < count; ++k) {
      double& score = scores_[first + k];
      const double now = score;
      score += share * (now - std::exchange(earlier_scores_[first + k], now));
      margins[k] = static_cast<float>(slopes_[first + k] < 0 ? score : -score);
    }
    miss_chances(std::span(margins).first(count), std::span(margins).first(count));
    for (size_t k = 0; k < count; ++k) slopes_[first + k] = std::copysign(margins[k], slopes_[first + k]);
  }
}

Descent::ColumnState BlockDescent::column_state(size_t column) const {
  const Coordinate& coordinate = coordinates_[column];
  const double earlier = earlier_weights_.empty() ? 0 : earlier_weights_[column];
  return {coordinate.weight, coordinate.delta, earlier, active_[column] != 0};
}

Descent::RowState BlockDescent::row_state(size_t row) const {
  return {scores_[row], earlier_scores_.empty() ? 0 : earlier_scores_[row], slopes_[row]};
}

void BlockDescent::set_column_state(size_t column, const ColumnState& state) {
  earlier_weights_.resize(coordinates_.size());
  coordinates_[column] = {state.weight, state.delta};
  earlier_weights_[column] = state.earlier;
  active_[column] = state.active ? 1 : 0;
}

void BlockDescent::set_row_state(size_t row, const RowState& state) {
  earlier_scores_.resize(scores_.size());
  scores_[row] = state.score;
  earlier_scores_[row] = state.earlier;
  slopes_[row] = state.slope;
}

double BlockDescent::loss() const {
  double sum = 0;
  std::array<float, kRowsAtATime> margins;
  for (size_t first = 0; first < scores_.size(); first += kRowsAtATime) {
    const size_t count = std::min(kRowsAtATime, scores_.size() - first);
    for (size_t k = 0; k < count; ++k) {
      margins[k] = static_cast<float>(slopes_[first + k] < 0 ? scores_[first + k] : -scores_[first + k]);
    }
    sum += logistic_loss(std::span(margins).first(count));
  }
  return sum;
}

double BlockDescent::take_violation() { return std::exchange(violation_, 0.0); }

}  // namespace pscloud

#include "learn/block_descent.h"

#include <cmath>
#include <utility>

#include "base/check.h"

namespace pscloud {
namespace {

constexpr double kCurvatureMax = 0.25;  // of the logistic loss

}  // namespace

BlockDescent::BlockDescent(ColumnMatrix matrix, std::span<const float> labels, std::vector<size_t> block_ends,
                           Options options)
    : matrix_(std::move(matrix)), block_ends_(std::move(block_ends)), options_(options) {
  CHECK(block_ends_.empty() ? matrix_.columns() == 0 : block_ends_.back() == matrix_.columns(), "blocks end elsewhere");
  rows_.reserve(labels.size());
  for (const float label : labels) {
    const float sign = label > 0 ? 1.0f : -1.0f;
    rows_.push_back({sign, -sign / 2, 0});
  }
  coordinates_.assign(matrix_.columns(), {0, options_.delta});
  active_.assign(matrix_.columns(), 1);
  measure_crowding();
}

// The columns of a block move at once. The loss of an example bends by no more than the sum of what each of its columns
// bends it, times how many they are (Cauchy and Schwarz): with that the steps of a block do not overshoot together.
void BlockDescent::measure_crowding() {
  crowding_.assign(matrix_.columns(), 1);
  std::vector<uint32_t> counts(rows_.size());
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

void BlockDescent::gradient(std::span<const uint32_t> columns, std::span<float> out) const {
  for (size_t i = 0; i < columns.size(); ++i) {
    const std::span<const uint32_t> rows = matrix_.rows_of(columns[i]);
    const std::span<const float> values = matrix_.values_of(columns[i]);
    const double delta = coordinates_[columns[i]].delta;
    double gradient = 0;
    double curvature = 0;
    if (values.empty()) {
      // Within the trust region the curvature grows by no more than this.
      const double growth = std::exp(delta);
      for (const uint32_t row : rows) {
        const double slope = rows_[row].slope;
        const double p = std::abs(slope);
        gradient += slope;
        curvature += std::min(kCurvatureMax, p * (1 - p) * growth);
      }
    } else {
      for (size_t k = 0; k < rows.size(); ++k) {
        const double slope = rows_[rows[k]].slope;
        const double x = values[k];
        const double p = std::abs(slope);
        gradient += slope * x;
        // In this order of arguments 0 * infinity, which is no number, gives the maximum.
        curvature += std::min(kCurvatureMax, p * (1 - p) * std::exp(std::abs(x) * delta)) * x * x;
      }
    }
    out[2 * i] = static_cast<float>(gradient);
    out[2 * i + 1] = static_cast<float>(curvature * crowding_[columns[i]]);
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
  const std::span<const uint32_t> rows = matrix_.rows_of(column);
  const std::span<const float> values = matrix_.values_of(column);
  for (size_t k = 0; k < rows.size(); ++k) {
    Row& row = rows_[rows[k]];
    row.score += change * (values.empty() ? 1.0f : values[k]);
    set_slope(row);
  }
}

void BlockDescent::extrapolate(double share) {
  earlier_weights_.resize(coordinates_.size());
  earlier_scores_.resize(rows_.size());
  for (size_t column = 0; column < coordinates_.size(); ++column) {
    const double weight = coordinates_[column].weight;
    coordinates_[column].weight += share * (weight - std::exchange(earlier_weights_[column], weight));
  }
  for (size_t i = 0; i < rows_.size(); ++i) {
    const double score = rows_[i].score;
    rows_[i].score += share * (score - std::exchange(earlier_scores_[i], score));
    set_slope(rows_[i]);
  }
}

double BlockDescent::loss() const {
  double sum = 0;
  for (const Row& row : rows_) {
    const double margin = row.label * row.score;
    sum += margin > 0 ? std::log1p(std::exp(-margin)) : std::log1p(std::exp(margin)) - margin;
  }
  return sum;
}

double BlockDescent::take_violation() { return std::exchange(violation_, 0.0); }

}  // namespace pscloud

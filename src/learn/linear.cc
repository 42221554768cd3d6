#include "learn/linear.h"

#include <algorithm>

#include "base/check.h"

namespace pscloud {

void score_rows(const SparseRows& rows, std::span<const float> weights, std::span<float> scores) {
  CHECK(scores.size() == rows.rows(), "{} scores for {} rows", scores.size(), rows.rows());
  size_t at = 0;
  for (size_t row = 0; row < rows.rows(); ++row) {
    const size_t end = rows.ends[row] - rows.first;
    float sum = 0;
    if (rows.values.empty()) {
      for (; at < end; ++at) sum += weights[rows.columns[at]];
    } else {
      for (; at < end; ++at) sum += weights[rows.columns[at]] * rows.values[at];
    }
    scores[row] = sum;
  }
}

void sum_gradient(const SparseRows& rows, std::span<const float> slopes, std::span<float> gradient) {
  CHECK(slopes.size() == rows.rows(), "{} slopes for {} rows", slopes.size(), rows.rows());
  std::ranges::fill(gradient, 0.0f);
  size_t at = 0;
  for (size_t row = 0; row < rows.rows(); ++row) {
    const size_t end = rows.ends[row] - rows.first;
    const float slope = slopes[row];
    if (rows.values.empty()) {
      for (; at < end; ++at) gradient[rows.columns[at]] += slope;
    } else {
      for (; at < end; ++at) gradient[rows.columns[at]] += slope * rows.values[at];
    }
  }
}

}  // namespace pscloud

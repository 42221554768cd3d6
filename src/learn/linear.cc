#include "learn/linear.h"

#include <algorithm>

#include "base/check.h"

namespace pscloud {
namespace {

// Calls of_row(row, begin, end) for each; its features are columns[begin] to columns[end - 1].
template <class OfRow>
void for_rows(const RowSlice& rows, std::span<const uint32_t> columns, OfRow of_row) {
  const size_t features = rows.rows() == 0 ? 0 : rows.ends.back() - rows.first;
  CHECK(columns.size() == features, "{} columns for {} features", columns.size(), features);
  size_t begin = 0;
  for (size_t row = 0; row < rows.rows(); ++row) {
    const size_t end = rows.ends[row] - rows.first;
    of_row(row, begin, end);
    begin = end;
  }
}

}  // namespace

void score_rows(const RowSlice& rows, std::span<const uint32_t> columns, std::span<const float> weights,
                std::span<float> scores) {
  CHECK(scores.size() == rows.rows(), "{} scores for {} rows", scores.size(), rows.rows());
  const bool ones = rows.values.empty();
  for_rows(rows, columns, [&](size_t row, size_t begin, size_t end) {
    float sum = 0;
    for (size_t i = begin; i < end; ++i) sum += weights[columns[i]] * (ones ? 1.0f : rows.values[i]);
    scores[row] = sum;
  });
}

void sum_gradient(const RowSlice& rows, std::span<const uint32_t> columns, std::span<const float> slopes,
                  std::span<float> gradient) {
  CHECK(slopes.size() == rows.rows(), "{} slopes for {} rows", slopes.size(), rows.rows());
  std::ranges::fill(gradient, 0.0f);
  const bool ones = rows.values.empty();
  for_rows(rows, columns, [&](size_t row, size_t begin, size_t end) {
    const float slope = slopes[row];
    for (size_t i = begin; i < end; ++i) gradient[columns[i]] += slope * (ones ? 1.0f : rows.values[i]);
  });
}

}  // namespace pscloud

#pragma once

#include <cstdint>
#include <span>

namespace pscloud {

// Examples as a sparse matrix: of each row the columns that are not zero.
struct SparseRows {
  std::span<const size_t> ends;       // of the features of each row, counted from `first` on
  size_t first = 0;                   // where those of the first row begin
  std::span<const uint32_t> columns;  // of each feature; columns[0] is the feature `first`
  std::span<const float> values;      // of each feature; empty: all are 1

  size_t rows() const { return ends.size(); }
};

// scores[row] = the sum over its features of weight times value.
void score_rows(const SparseRows& rows, std::span<const float> weights, std::span<float> scores);

// gradient[column] = the sum over all rows of slope times value. Overwrites it.
void sum_gradient(const SparseRows& rows, std::span<const float> slopes, std::span<float> gradient);

}  // namespace pscloud

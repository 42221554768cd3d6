#include "data/column_matrix.h"

#include <numeric>

#include "base/check.h"

namespace pscloud {

ColumnMatrix transpose(const RowBlock& block, std::span<const uint32_t> columns, std::span<const uint32_t> places,
                       size_t count) {
  CHECK(block.rows() < UINT32_MAX, "{} rows in one matrix", block.rows());
  ColumnMatrix matrix;
  // First how many entries each column has, then where they begin; while they are filled in, the beginnings move to the
  // ends.
  matrix.ends.assign(count + 1, 0);
  for (const uint32_t column : columns) {
    if (places[column] != ColumnMatrix::kNowhere) ++matrix.ends[places[column] + 1];
  }
  std::partial_sum(matrix.ends.begin(), matrix.ends.end(), matrix.ends.begin());
  const size_t entries = matrix.ends.back();
  matrix.ends.pop_back();
  matrix.keys.resize(count);
  matrix.rows.resize(entries);
  if (!block.values.empty()) matrix.values.resize(entries);
  size_t feature = 0;
  for (uint32_t row = 0; row < block.rows(); ++row) {
    for (; feature < block.ends[row]; ++feature) {
      const uint32_t place = places[columns[feature]];
      if (place == ColumnMatrix::kNowhere) continue;
      const size_t entry = matrix.ends[place]++;
      matrix.rows[entry] = row;
      if (!matrix.values.empty()) matrix.values[entry] = block.values[feature];
    }
  }
  return matrix;
}

}  // namespace pscloud

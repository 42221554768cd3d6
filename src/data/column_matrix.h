#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "data/row_block.h"
#include "pscloud/types.h"

namespace pscloud {

// Features of examples, column by column: where each key stands.
struct ColumnMatrix {
  static constexpr uint32_t kNowhere = UINT32_MAX;

  std::vector<Key> keys;       // of each column
  std::vector<size_t> ends;    // of the entries of each column; they begin where those of the column before end
  std::vector<uint32_t> rows;  // of each entry; they increase within a column
  std::vector<float> values;   // of each entry; empty: all are 1

  size_t columns() const { return keys.size(); }
  size_t begin_of(size_t column) const { return column == 0 ? 0 : ends[column - 1]; }
  std::span<const uint32_t> rows_of(size_t column) const {
    return std::span(rows).subspan(begin_of(column), ends[column] - begin_of(column));
  }
  std::span<const float> values_of(size_t column) const {
    return values.empty() ? std::span<const float>()
                          : std::span(values).subspan(begin_of(column), ends[column] - begin_of(column));
  }
};

// `columns` has of each feature of the block the number of its key, `places` of each number the column that it goes to,
// or kNowhere for what is left out. The caller fills in the keys. At most 2^32 - 1 rows.
ColumnMatrix transpose(const RowBlock& block, std::span<const uint32_t> columns, std::span<const uint32_t> places,
                       size_t count);

}  // namespace pscloud

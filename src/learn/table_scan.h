#pragma once

#include <cstdint>
#include <functional>

#include "pscloud/worker.h"

namespace pscloud {

// Gives `take` all rows of one part of a table, many at a time.
Result<> scan_part(Worker& worker, const Table& table, int part, ScanKind kind,
                   const std::function<Result<>(const ScannedRows&)>& take);

// The same in the order of keys: rows stand in the order in which they came, which is another one in each run of
// several workers. All rows of the part are in memory for that.
Result<> scan_part_by_key(Worker& worker, const Table& table, int part, ScanKind kind,
                          const std::function<Result<>(const ScannedRows&)>& take);

struct RowCount {
  uint64_t rows = 0;
  uint64_t nonzero = 0;
};

// Of all parts.
Result<RowCount> count_rows(Worker& worker, const Table& table);

}  // namespace pscloud

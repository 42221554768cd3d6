#include "learn/table_scan.h"

namespace pscloud {

Result<> scan_part(Worker& worker, const Table& table, int part, ScanKind kind,
                   const std::function<Result<>(const ScannedRows&)>& take) {
  for (uint64_t first = 0;;) {
    const ScannedRows rows = TRY(worker.scan(table, part, first, kind));
    if (rows.next == first) return {};
    TRY(take(rows));
    first = rows.next;
  }
}

Result<RowCount> count_rows(Worker& worker, const Table& table) {
  RowCount count;
  for (int part = 0; part < worker.parts(); ++part) {
    uint64_t rows_here = 0;
    TRY(scan_part(worker, table, part, ScanKind::kCount, [&](const ScannedRows& rows) -> Result<> {
      rows_here = rows.next;
      count.nonzero += rows.nonzero;
      return {};
    }));
    count.rows += rows_here;
  }
  return count;
}

}  // namespace pscloud

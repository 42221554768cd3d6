#include "learn/table_scan.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace pscloud {
namespace {

constexpr size_t kRowsGiven = 1 << 16;  // at a time

}  // namespace

Result<> scan_part(Worker& worker, const Table& table, int part, ScanKind kind,
                   const std::function<Result<>(const ScannedRows&)>& take) {
  for (uint64_t first = 0;;) {
    const ScannedRows rows = TRY(worker.scan(table, part, first, kind));
    if (rows.next == first) return {};
    TRY(take(rows));
    first = rows.next;
  }
}

Result<> scan_part_by_key(Worker& worker, const Table& table, int part, ScanKind kind,
                          const std::function<Result<>(const ScannedRows&)>& take) {
  std::vector<Key> keys;
  std::vector<float> floats;
  TRY(scan_part(worker, table, part, kind, [&](const ScannedRows& rows) -> Result<> {
    keys.insert(keys.end(), rows.keys.begin(), rows.keys.end());
    floats.insert(floats.end(), rows.floats.begin(), rows.floats.end());
    return {};
  }));
  if (keys.empty()) return {};
  std::vector<size_t> order(keys.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, {}, [&](size_t row) { return keys[row]; });
  const size_t width = floats.size() / keys.size();
  for (size_t first = 0; first < order.size(); first += kRowsGiven) {
    ScannedRows some;
    for (size_t i = first; i < std::min(order.size(), first + kRowsGiven); ++i) {
      some.keys.push_back(keys[order[i]]);
      const float* const row = &floats[order[i] * width];
      some.floats.insert(some.floats.end(), row, row + width);
    }
    TRY(take(some));
  }
  return {};
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

#pragma once

#include <cstdint>
#include <vector>

#include "engine/table/table_store.h"

namespace pscloud {

// Where a key's counts stand in a count-min sketch: cell (first + i * step) mod cells, in 32-bit arithmetic, for each
// hash i. The hash is that of dmlc's parameter server.
struct SketchProbes {
  uint32_t first = 0;
  uint32_t step = 0;
};
SketchProbes sketch_probes(Key key);

// Counts of more keys than there is memory for: a push adds to a key's count, a pull tells about what it is. That is
// never less than the truth, and seldom more (count-min, Cormode and Muthukrishnan 2005). A cell is a byte and stays at
// kCountMax.
class SketchTable final : public TableStore {
 public:
  static constexpr uint8_t kCountMax = 254;
  static constexpr uint64_t kCellsMin = 64;
  static constexpr uint64_t kCellsMax = UINT32_MAX;

  // `first_cell`: its number among those of all owners.
  SketchTable(const TableSpec& spec, uint64_t first_cell, uint64_t cells);

  Result<> push(std::span<const Key> keys, std::span<const float> values, RowMemo* memo) override;
  Result<> pull(std::span<const Key> keys, std::span<float> out, RowMemo* memo) const override;
  Result<> push_pull(std::span<const Key> keys, std::span<const float> values, std::span<float> out,
                     RowMemo* memo) override;
  Result<> prepare_push(std::span<const Key> keys, std::span<const float> values, RowMemo* memo) override;

  // A sketch knows no rows, but to be written down and set again it is told as such, in kState only: each is
  // kCellsInRow cells, three in a float, under the number of the first. Rows without counts are left out.
  static constexpr size_t kFloatsInRow = 64;
  static constexpr size_t kCellsInRow = 3 * kFloatsInRow;
  Result<> set(std::span<const Key> keys, std::span<const float> floats, ScanKind kind) override;
  ScannedRows scan(uint64_t first, uint64_t rows_max, ScanKind kind) const override;

  Result<> push_range(uint64_t first, std::span<const float> values) override;
  Result<> pull_range(uint64_t first, std::span<float> out) const override;
  Result<> push_pull_range(uint64_t first, std::span<const float> values, std::span<float> out) override;
  Result<std::span<const float>> view_range(uint64_t first, uint64_t count) const override;
  Result<> prepare_push_range(uint64_t first, std::span<const float> values) override;
  Result<PublishedRows> publish(const Lender& lend) override;

  const TableSpec& spec() const override { return spec_; }
  uint64_t rows() const override { return 0; }
  size_t state_width() const override { return kFloatsInRow - 1; }
  uint64_t bytes() const override { return cells_.size(); }

 private:
  Error no_rows() const;
  Result<> check_sizes(std::span<const Key> keys, size_t floats) const;
  Result<> check(std::span<const Key> keys, std::span<const float> values) const;

  const TableSpec spec_;
  const uint64_t first_cell_;
  std::vector<uint8_t> cells_;
};

}  // namespace pscloud

#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/table/row_update.h"
#include "engine/table/sparse_index.h"
#include "engine/table/sparse_rows.h"
#include "engine/table/table_store.h"

namespace pscloud {

// The rows of a sparse table that have been pushed to. No two keys share a row, and any 64-bit number is a key.
// A row is [values | state]; its number never changes.
class SparseTable final : public TableStore {
 public:
  SparseTable(const TableSpec& spec, std::unique_ptr<Updater> updater, uint64_t bytes_max);

  // What one of so many rows, of values and state so many floats each, will take at most.
  static uint64_t bytes_for(uint64_t rows, size_t floats) {
    return sizeof(SparseTable) + SparseIndex().bytes_with(rows) + SparseRows(floats).bytes_after(rows);
  }

  Result<> push(std::span<const Key> keys, std::span<const float> values, RowMemo* memo) override;
  Result<> pull(std::span<const Key> keys, std::span<float> out, RowMemo* memo) const override;
  Result<> push_pull(std::span<const Key> keys, std::span<const float> values, std::span<float> out,
                     RowMemo* memo) override;
  Result<> push_range(uint64_t first, std::span<const float> values) override;
  Result<> pull_range(uint64_t first, std::span<float> out) const override;
  Result<> push_pull_range(uint64_t first, std::span<const float> values, std::span<float> out) override;
  Result<std::span<const float>> view_range(uint64_t first, uint64_t count) const override;
  Result<> prepare_push(std::span<const Key> keys, std::span<const float> values, RowMemo* memo) override;
  Result<> prepare_push_range(uint64_t first, std::span<const float> values) override;
  Result<> set(std::span<const Key> keys, std::span<const float> floats, ScanKind kind) override;
  Result<PublishedRows> publish(const Lender& lend) override;
  ScannedRows scan(uint64_t first, uint64_t rows_max, ScanKind kind) const override;

  void limit_bytes(uint64_t bytes_max) override { bytes_max_ = bytes_max; }
  const TableSpec& spec() const override { return spec_; }
  uint64_t rows() const override { return rows_.size(); }
  size_t state_width() const override { return state_width_; }
  uint64_t bytes() const override { return own_bytes() + index_.bytes() + rows_.bytes(); }

 private:
  static constexpr size_t kGroup = RowUpdate::kGroup;
  // Places in a list of keys that have no row.
  using Missing = std::vector<uint32_t>;

  uint64_t own_bytes() const { return sizeof *this - sizeof index_; }
  Result<> check_keys(std::span<const Key> keys, size_t floats, RowMemo* memo) const;
  Result<> check_values(std::span<const Key> keys, std::span<const float> values) const;
  Result<> push_checked(std::span<const Key> keys, std::span<const float> values, float* out, RowMemo* memo);
  bool must_fit(uint64_t new_rows) const;

  void look_up_missing(std::span<const Key> keys, std::span<uint32_t> rows, Missing& missing) const;
  Result<> find_or_make(std::span<const Key> keys, RowMemo& memo);
  Result<> make_rows(std::span<const Key> keys, const Missing& missing, uint32_t* rows);
  Error not_dense() const;

  const TableSpec spec_;
  const std::string place_;  // opens every message
  const std::unique_ptr<Updater> updater_;
  uint64_t bytes_max_;
  const size_t state_width_;
  SparseIndex index_;
  SparseRows rows_;
  RowUpdate update_;
};

}  // namespace pscloud

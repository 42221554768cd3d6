#pragma once

#include <memory>
#include <optional>
#include <string>

#include "engine/table/huge_memory.h"
#include "engine/table/row_versions.h"
#include "engine/table/table_store.h"

namespace pscloud {

// Rows first_row..first_row+row_count-1 of a dense table, all there from the start. Values and state are two arrays,
// each row by row: a pull copies one piece of memory and an updater without state touches nothing else.
class DenseTable final : public TableStore {
 public:
  DenseTable(const TableSpec& spec, std::unique_ptr<Updater> updater, uint64_t first_row, uint64_t row_count);

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

  const TableSpec& spec() const override { return spec_; }
  uint64_t rows() const override { return row_count_; }
  size_t state_width() const override { return state_width_; }
  uint64_t bytes() const override;

 private:
  const float* value(uint64_t row) const { return values() + (row - first_row_) * spec_.width; }
  float* values() const { return values_at_; }
  size_t values_bytes() const { return row_count_ * spec_.width * sizeof(float); }
  float* states() const { return reinterpret_cast<float*>(states_.data()); }
  Result<> check_rows(std::span<const Key> keys, size_t floats, RowMemo* memo) const;
  Result<> check_range(uint64_t first, size_t floats) const;
  Result<> check_values(uint64_t first, std::span<const Key> keys, std::span<const float> values) const;
  void push_checked(std::span<const Key> keys, const float* pushed, float* out);
  void update_run(uint64_t first, const float* pushed, size_t rows, float* out);

  const TableSpec spec_;
  const std::string place_;  // opens every message
  const std::unique_ptr<Updater> updater_;
  const uint64_t first_row_;
  const uint64_t row_count_;
  const size_t state_width_;
  std::optional<HugeMemory> values_;  // until they are published
  HugeMemory states_;
  float* values_at_;
  PublishedRows published_;
  RowVersionWriter versions_;
};

}  // namespace pscloud

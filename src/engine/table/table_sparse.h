#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/table/sparse_index.h"
#include "engine/table/sparse_rows.h"
#include "engine/table/table_store.h"

namespace pscloud {

// The rows of a sparse table that have been pushed to. No two keys share a row, and any 64-bit number is a key.
// A row is [values | state]; its number never changes.
class SparseTable final : public TableStore {
 public:
  SparseTable(const TableSpec& spec, std::unique_ptr<Updater> updater, uint64_t bytes_max);

  Result<> push(std::span<const Key> keys, std::span<const float> values) override;
  Result<> pull(std::span<const Key> keys, std::span<float> out) const override;
  Result<> push_range(uint64_t first, std::span<const float> values) override;
  Result<> pull_range(uint64_t first, std::span<float> out) const override;
  Result<> prepare_push(std::span<const Key> keys, std::span<const float> values) override;
  Result<> prepare_push_range(uint64_t first, std::span<const float> values) override;

  void limit_bytes(uint64_t bytes_max) override { bytes_max_ = bytes_max; }
  const TableSpec& spec() const override { return spec_; }
  uint64_t rows() const override { return rows_.size(); }
  uint64_t bytes() const override { return sizeof *this - sizeof index_ + index_.bytes() + rows_.bytes(); }

 private:
  // Look-ups are done this many at a time: the memory of one group is on its way while the next is asked for.
  static constexpr size_t kGroup = 16;

  // What a push will do: the row of each key (kNone: still to be made) and how many are new in each segment.
  struct Plan {
    std::vector<uint32_t> rows;
    SparseIndex::SegmentCounts more{};
    uint64_t new_rows = 0;
  };

  Result<> check(std::span<const Key> keys, std::span<const float> values) const;
  Result<Plan> plan_push(std::span<const Key> keys) const;
  void find_group(std::span<const Key> keys, uint32_t* rows) const;
  void make_rows(std::span<const Key> keys, Plan& plan);
  void update_group(std::span<const uint32_t> rows, const float* pushed);
  Error not_dense() const;

  const TableSpec spec_;
  const std::string place_;  // opens every message
  const std::unique_ptr<Updater> updater_;
  uint64_t bytes_max_;
  const size_t state_width_;
  SparseIndex index_;
  SparseRows rows_;
  // Rows of one group brought together for the updater's loop.
  std::vector<float> group_values_;
  std::vector<float> group_states_;
};

}  // namespace pscloud

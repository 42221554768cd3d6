#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/table/sparse_index.h"
#include "engine/table/sparse_rows.h"

namespace pscloud {

// Looks up a list of keys, a group at a time. Three groups are on their way, each at another step: its lines of the
// index are asked for, its rows are asked for, its keys are compared. So there is always something to do while memory
// answers. Neither index nor rows may grow meanwhile.
class RowFinder {
 public:
  static constexpr size_t kGroup = 32;

  struct Group {
    size_t begin = 0;
    size_t size = 0;
    uint32_t rows[kGroup];  // of keys begin to begin+size; SparseIndex::kNone if a key has none
    uint64_t mixed[kGroup];
    const SparseIndex::Line* homes[kGroup];

    std::span<const uint32_t> found() const { return {rows, size}; }
  };

  // `row_bytes` of the floats of each row will be used.
  RowFinder(const SparseIndex& index, const SparseRows& rows, std::span<const Key> keys, size_t row_bytes)
      : index_(index), rows_(rows), keys_(keys), row_bytes_(row_bytes) {}

  // The next group in the order of the keys; null after the last.
  const Group* next();

 private:
  void step();
  template <bool kWhole>
  void step_groups(Group& first, Group& second, Group& third);

  const SparseIndex& index_;
  const SparseRows& rows_;
  const std::span<const Key> keys_;
  const size_t row_bytes_;
  size_t steps_ = 0;
  Group groups_[3];
};

}  // namespace pscloud

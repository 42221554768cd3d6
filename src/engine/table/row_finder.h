#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/hash.h"
#include "engine/table/sparse_index.h"
#include "engine/table/sparse_rows.h"

namespace pscloud {

// Looks up a list of keys, a group at a time. Some groups are on their way, each at another step: its lines of the
// index are asked for, its rows are asked for, its keys are compared. So there is always something to do while memory
// answers. A processor has only so many questions to memory open at a time: who works on a group for long calls
// ask_ahead() meanwhile, or memory would have nothing to do. Neither index nor rows may grow meanwhile.
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

  // About kGroup times after each next(): asks for one line of the index. More than that does nothing.
  void ask_ahead() {
    if (asked_ < askable_) ask_for_line(asked_++);
  }

 private:
  static constexpr size_t kGroups = 4;  // given, rows asked for, lines asked for, being asked for

  Group& group_of(size_t key) { return groups_[key / kGroup % kGroups]; }
  void ask_for_line(size_t key) {
    Group& group = group_of(key);
    const uint64_t mixed = group.mixed[key % kGroup] = mix_key(keys_[key]);
    __builtin_prefetch(group.homes[key % kGroup] = index_.home(mixed));
  }
  void allow(size_t key) { askable_ = std::min(key, keys_.size()); }
  void begin_group(Group& group, size_t begin) const {
    group.begin = begin;
    group.size = begin < keys_.size() ? std::min(kGroup, keys_.size() - begin) : 0;
  }
  // Guesses rows from lines and asks for them, compares the keys of others, and asks for lines if kAsk.
  template <bool kWhole, bool kAsk>
  void step(Group& guessed, Group& compared);

  const SparseIndex& index_;
  const SparseRows& rows_;
  const std::span<const Key> keys_;
  const size_t row_bytes_;
  size_t given_ = 0;    // keys of the groups that have been given
  size_t asked_ = 0;    // keys whose lines have been asked for
  size_t askable_ = 0;  // keys whose lines may be asked for by now
  Group groups_[kGroups];
};

}  // namespace pscloud

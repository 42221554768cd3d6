#include "engine/table/row_finder.h"

#include <algorithm>

#include "base/hash.h"
#include "engine/table/prefetch.h"

namespace pscloud {

const RowFinder::Group* RowFinder::next() {
  do {
    if (steps_ * kGroup >= keys_.size() + 2 * kGroup) return nullptr;
    step();
  } while (steps_ < 3);  // the first group has two steps to go
  return &groups_[steps_ % 3];
}

void RowFinder::step() {
  Group& first = groups_[steps_ % 3];
  Group& second = groups_[(steps_ + 2) % 3];
  Group& third = groups_[(steps_ + 1) % 3];
  first.begin = steps_ * kGroup;
  first.size = first.begin < keys_.size() ? std::min(kGroup, keys_.size() - first.begin) : 0;
  ++steps_;
  if (first.size == kGroup && second.size == kGroup && third.size == kGroup) {
    step_groups<true>(first, second, third);
  } else {
    step_groups<false>(first, second, third);
  }
}

template <bool kWhole>
void RowFinder::step_groups(Group& first, Group& second, Group& third) {
  const bool beside = rows_.key_is_beside();
  const bool crowded = index_.is_crowded();
  const size_t bytes_at_key = sizeof(Key) + (beside ? row_bytes_ : 0);
  uint32_t further[kGroup];
  size_t further_size = 0;
  for (size_t i = 0; i < kGroup; ++i) {
    if (kWhole || i < first.size) {
      first.mixed[i] = mix_key(keys_[first.begin + i]);
      first.homes[i] = index_.home(first.mixed[i]);
      __builtin_prefetch(first.homes[i]);
    }
    if (kWhole || i < second.size) {
      const uint32_t row = SparseIndex::guess(second.homes[i], second.mixed[i]);
      second.rows[i] = row;
      if (row < SparseIndex::kRowsMax) [[likely]] {
        ask_for(rows_.key_address(row), bytes_at_key);
        if (!beside) ask_for(rows_.floats(row), row_bytes_);
      } else if (row == SparseIndex::kFurther) {
        __builtin_prefetch(second.homes[i] + 1);
        further[further_size++] = static_cast<uint32_t>(i);
      }
    }
    if (kWhole || i < third.size) {
      uint32_t& row = third.rows[i];
      if (row == SparseIndex::kNone ? crowded : rows_.key(row) != keys_[third.begin + i]) [[unlikely]]
        row = index_.find(third.mixed[i], rows_);
    }
  }
  for (size_t i = 0; i < further_size; ++i) {
    const uint32_t row = second.rows[further[i]] =
        SparseIndex::guess_further(second.homes[further[i]], second.mixed[further[i]]);
    if (row != SparseIndex::kNone) ask_for(rows_.key_address(row), bytes_at_key);
  }
}

}  // namespace pscloud

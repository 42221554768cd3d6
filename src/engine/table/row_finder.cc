#include "engine/table/row_finder.h"

#include "engine/table/prefetch.h"

namespace pscloud {

const RowFinder::Group* RowFinder::next() {
  if (given_ >= keys_.size()) return nullptr;
  if (given_ == 0) {
    allow(2 * kGroup);
    while (asked_ < askable_) ask_ahead();
    Group none;
    begin_group(group_of(0), 0);
    step<false, false>(groups_[0], none);
  }
  Group& compared = group_of(given_);
  Group& guessed = group_of(given_ + kGroup);
  begin_group(guessed, given_ + kGroup);
  allow(given_ + 3 * kGroup);
  if (compared.size < kGroup || guessed.size < kGroup) {
    step<false, false>(guessed, compared);
  } else if (asked_ == askable_) {
    step<true, false>(guessed, compared);
  } else {
    step<true, true>(guessed, compared);  // for who does not ask ahead
  }
  given_ += kGroup;
  allow(given_ + 3 * kGroup);
  return &compared;
}

template <bool kWhole, bool kAsk>
void RowFinder::step(Group& guessed, Group& compared) {
  const bool beside = rows_.key_is_beside();
  const bool crowded = index_.is_crowded();
  const size_t bytes_at_key = sizeof(Key) + (beside ? row_bytes_ : 0);
  uint32_t further[kGroup];
  size_t further_size = 0;
  for (size_t i = 0; i < kGroup; ++i) {
    if (kAsk) ask_ahead();
    if (kWhole || i < guessed.size) {
      const uint32_t row = SparseIndex::guess(guessed.homes[i], guessed.mixed[i]);
      guessed.rows[i] = row;
      if (row < SparseIndex::kRowsMax) [[likely]] {
        ask_for(rows_.key_address(row), bytes_at_key);
        if (!beside) ask_for(rows_.floats(row), row_bytes_);
      } else if (row == SparseIndex::kFurther) {
        __builtin_prefetch(guessed.homes[i] + 1);
        further[further_size++] = static_cast<uint32_t>(i);
      }
    }
    if (kWhole || i < compared.size) {
      uint32_t& row = compared.rows[i];
      if (row == SparseIndex::kNone ? crowded : rows_.key(row) != keys_[compared.begin + i]) [[unlikely]]
        row = index_.find(compared.mixed[i], rows_);
    }
  }
  for (size_t i = 0; i < further_size; ++i) {
    const uint32_t row = guessed.rows[further[i]] =
        SparseIndex::guess_further(guessed.homes[further[i]], guessed.mixed[further[i]]);
    if (row != SparseIndex::kNone) ask_for(rows_.key_address(row), bytes_at_key);
  }
}

}  // namespace pscloud

#include "data/localizer.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "base/check.h"

namespace pscloud {
namespace {

constexpr size_t kSlotsMin = 1024;
constexpr size_t kAhead = 16;  // features whose slot is asked for before its turn

}  // namespace

void Localizer::localize(std::span<const Key> features) {
  CHECK(features.size() <= kFeaturesMax, "a minibatch of {} features", features.size());
  columns_.resize(features.size());
  number_by_appearance(features);
  sort_seen();
  const size_t size = seen_.size();
  keys_.resize(size);
  ranks_.resize(size);
  for (uint32_t rank = 0; rank < size; ++rank) {
    keys_[rank] = seen_[rank].key;
    ranks_[seen_[rank].number] = rank;
  }
  for (uint32_t& column : columns_) column = ranks_[column];
}

// Numbers stand in columns_ afterwards, and keys by number in seen_. A slot has no key of its own, so that the table is
// half as large: the key it leads to is looked at, and most features have keys that came a moment ago.
void Localizer::number_by_appearance(std::span<const Key> features) {
  // A minibatch is much like the one before it.
  make_slots(2 * seen_.size());
  seen_.clear();
  for (size_t i = 0; i < features.size(); ++i) {
    if (i + kAhead < features.size()) __builtin_prefetch(&slots_[slot_of(features[i + kAhead])]);
    const Key key = features[i];
    size_t slot = slot_of(key);
    while (slots_[slot] != 0 && seen_[slots_[slot] - 1].key != key) slot = (slot + 1) & mask_;
    if (slots_[slot] == 0) {
      seen_.push_back({key, static_cast<uint32_t>(seen_.size())});
      slots_[slot] = static_cast<uint32_t>(seen_.size());
      if (2 * seen_.size() > slots_.size()) grow_slots();
      columns_[i] = static_cast<uint32_t>(seen_.size() - 1);
    } else {
      columns_[i] = slots_[slot] - 1;
    }
  }
}

void Localizer::make_slots(size_t count) {
  const size_t size = std::bit_ceil(std::max(kSlotsMin, count));
  slots_.assign(size, 0);
  mask_ = size - 1;
  shift_ = 64 - std::countr_zero(size);
}

void Localizer::grow_slots() {
  make_slots(2 * slots_.size());
  for (const Seen& seen : seen_) {
    size_t slot = slot_of(seen.key);
    while (slots_[slot] != 0) slot = (slot + 1) & mask_;
    slots_[slot] = seen.number + 1;
  }
}

// By key, some bits at a time from the lowest. Bits that are the same in all keys, as the upper ones of small ids are,
// cost no pass.
void Localizer::sort_seen() {
  constexpr int kDigitBits = 11;
  constexpr size_t kDigits = size_t{1} << kDigitBits;
  if (seen_.size() < 2) return;
  Key differ = 0;
  for (const Seen& seen : seen_) differ |= seen.key ^ seen_[0].key;
  aside_.resize(seen_.size());
  for (int shift = 0; shift < 64; shift += kDigitBits) {
    const auto digit_of = [shift](Key key) { return (key >> shift) % kDigits; };
    if (digit_of(differ) == 0) continue;
    std::array<uint32_t, kDigits> places{};
    for (const Seen& seen : seen_) ++places[digit_of(seen.key)];
    uint32_t before = 0;
    for (uint32_t& place : places) before += std::exchange(place, before);
    for (const Seen& seen : seen_) aside_[places[digit_of(seen.key)]++] = seen;
    std::swap(seen_, aside_);
  }
}

}  // namespace pscloud

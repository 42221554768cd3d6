#include "data/localizer.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "base/check.h"
#include "base/vector_clones.h"

namespace pscloud {
namespace {

constexpr size_t kSlotsMin = 1024;
constexpr size_t kAhead = 16;  // features whose slot is asked for before its turn
constexpr uint32_t kWordBits = 32;

struct Extremes {
  Key least;
  Key greatest;
};

PSCLOUD_VECTOR_CLONES
Extremes extremes_of(const Key* features, size_t count) {
  Extremes found{features[0], features[0]};
  for (size_t i = 1; i < count; ++i) {
    found.least = std::min(found.least, features[i]);
    found.greatest = std::max(found.greatest, features[i]);
  }
  return found;
}

// A word of the map has 32 bits, one for each key, and above them how many bits are set in the words before it: both
// are read at once. Sets the bit of each feature, counted from that of the least key. False if there is a key outside
// of the range.
PSCLOUD_VECTOR_CLONES
bool mark(const Key* features, size_t count, Key least, Key range, uint64_t* words) {
  bool outside = false;
  for (size_t i = 0; i < count; ++i) {
    const Key at = features[i] - least;
    outside |= at > range;
    const Key place = std::min(at, range);
    words[place / kWordBits] |= uint64_t{1} << place % kWordBits;
  }
  return !outside;
}

// Counts the bits before each word; returns how many there are in all.
PSCLOUD_VECTOR_CLONES
uint32_t count_before(uint64_t* words, size_t size) {
  uint32_t sum = 0;
  for (size_t i = 0; i < size; ++i) {
    const uint64_t bits = words[i];
    words[i] = bits | uint64_t{sum} << kWordBits;
    sum += static_cast<uint32_t>(std::popcount(bits));
  }
  return sum;
}

// A key is put in its place by each of its features: that costs less than to look for the bits that are set.
PSCLOUD_VECTOR_CLONES
void number(const Key* features, size_t count, Key least, const uint64_t* words, Key* keys, uint32_t* columns) {
  for (size_t i = 0; i < count; ++i) {
    const Key at = features[i] - least;
    const uint64_t word = words[at / kWordBits];
    const uint64_t below = (uint64_t{1} << at % kWordBits) - 1;
    const uint32_t column =
        static_cast<uint32_t>(word >> kWordBits) + static_cast<uint32_t>(std::popcount(word & below));
    columns[i] = column;
    keys[column] = features[i];
  }
}

}  // namespace

void Localizer::localize(std::span<const Key> features) {
  CHECK(features.size() <= kFeaturesMax, "a minibatch of {} features", features.size());
  columns_.resize(features.size());
  if (features.empty()) return keys_.clear();
  // With more words than features most would be passed over for nothing.
  const auto is_close = [&](Key range) { return range / kWordBits / 2 < features.size(); };
  // Most often all keys are where those of earlier minibatches were, and need no look of their own before.
  const bool has_range = !map_.empty();
  if (has_range && is_close(range_) && localize_close(features)) return;
  auto [least, greatest] = extremes_of(features.data(), features.size());
  if (!is_close(greatest - least)) return localize_any(features);
  if (has_range) {
    const Key least_of_all = std::min(least, least_);
    const Key greatest_of_all = std::max(greatest, least_ + range_);
    if (is_close(greatest_of_all - least_of_all)) {
      least = least_of_all;
      greatest = greatest_of_all;
    }
  }
  least_ = least;
  range_ = greatest - least;
  CHECK(localize_close(features), "keys from {} to {}", least, greatest);
}

bool Localizer::localize_close(std::span<const Key> features) {
  map_.assign(range_ / kWordBits + 1, 0);
  if (!mark(features.data(), features.size(), least_, range_, map_.data())) return false;
  keys_.resize(count_before(map_.data(), map_.size()));
  number(features.data(), features.size(), least_, map_.data(), keys_.data(), columns_.data());
  return true;
}

void Localizer::localize_any(std::span<const Key> features) {
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

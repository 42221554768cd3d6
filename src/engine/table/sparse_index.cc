#include "engine/table/sparse_index.h"

#include <algorithm>

#include "base/hash.h"

namespace pscloud {
namespace {

// On average; the groups that grow next have up to an eighth more. Fewer cost memory: with these a key takes 7.5 bytes.
// More cost time: searches go on in the next line.
constexpr uint64_t kKeysPerTenLines = 85;
// Groups that double begin with it here, and all have done it when those that had not would have more than the above.
constexpr uint64_t kKeysPerTenLinesToDouble = 70;

}  // namespace

constinit const std::array<std::array<uint8_t, 256>, SparseIndex::kGroupLines + 1> SparseIndex::kGiven = [] {
  std::array<std::array<uint8_t, 256>, kGroupLines + 1> given{};
  for (uint32_t step = 1; step < kGroupLines; ++step) {
    const uint32_t lines = kGroupLines + step;
    std::array<uint32_t, 2 * kGroupLines> left{};  // what each keeps; 0 stands for the first eight
    for (uint32_t line = kGroupLines; line + 1 < lines; ++line) left[line] = (256 + lines - 1) / lines;
    left[0] = (256 * kGroupLines + lines - 1) / lines;
    for (size_t i = 0; i < 256; ++i) {
      const uint8_t before = given[step - 1][i];
      const bool stays = left[before] > 0;
      if (stays) --left[before];
      given[step][i] = stays ? before : static_cast<uint8_t>(lines - 1);
    }
  }
  return given;
}();

SparseIndex::SparseIndex() { memory_.grow((kGroupLines + kReachMax) * sizeof(Line)); }

uint32_t SparseIndex::find(uint64_t mixed, const SparseRows& rows) const {
  const Key key = unmix_key(mixed);
  const Line* const first = home(mixed);
  for (uint32_t i = 0; i <= first->reach(); ++i) {
    const Line& line = first[i];
    for (uint32_t left = line.matches(Line::slot(tag_of(mixed), i > 0)); left != 0; left &= left - 1) {
      const uint32_t row = line.row(static_cast<uint32_t>(std::countr_zero(left)));
      if (rows.key(row) == key) return row;
    }
  }
  if (first->reach() < kReachMax) return kNone;
  const auto [begin, end] = crowded_.equal_range(home_of(mixed));
  const auto found = std::find_if(begin, end, [&](const auto& one) { return rows.key(one.second) == key; });
  return found == end ? kNone : found->second;
}

// The lines that so many keys want.
uint64_t SparseIndex::lines_for(uint64_t keys) {
  const uint64_t least = (10 * keys + kKeysPerTenLines - 1) / kKeysPerTenLines;
  const uint64_t whole = std::bit_ceil(std::max<uint64_t>(least, kGroupLines));
  if (whole > kWholeLines) return least;
  // Those that double: none at first, then more and more, and all of them when no more keys fit into `whole`.
  constexpr uint64_t kSpan = kKeysPerTenLines - kKeysPerTenLinesToDouble;
  const uint64_t beyond = 10 * keys - std::min(10 * keys, kKeysPerTenLinesToDouble * whole);
  return whole == kWholeLines ? whole : whole + (beyond + kSpan - 1) / kSpan;
}

uint64_t SparseIndex::memory_for(uint64_t keys) const {
  uint64_t lines = std::max<uint64_t>(lines_for(count_ + keys), line_count());
  // The lines that groups get at once lie far apart.
  if (lines <= kWholeLines) lines = std::bit_ceil(lines);
  return HugeMemory::whole_pages((lines + kReachMax) * sizeof(Line));
}

uint64_t SparseIndex::bytes_with(uint64_t keys) const {
  // Chance crowds one of two thousand.
  const uint64_t crowded = std::max<uint64_t>(crowded_.size(), (count_ + keys) / 512) + keys / 64 + 16;
  return bytes_of(std::max<uint64_t>(memory_for(keys), memory_.size()), crowded);
}

void SparseIndex::grow_by(uint64_t keys, const SparseRows& rows) {
  memory_.grow(memory_for(keys));
  const uint64_t lines = lines_for(count_ + keys);
  while (line_count() < lines) grow_group(rows);
}

// The next group gets one line more, or eight.
void SparseIndex::grow_group(const SparseRows& rows) {
  const uint64_t group = grown_;
  const uint32_t level = level_;
  const uint32_t lines_after = group_lines_ + step_;
  moved_.clear();
  for (uint32_t i = 0; i < group_lines_; ++i) take_out((size_t{i} << level) + group, lines_after, rows);

  ++grown_;
  if (grown_ < uint64_t{1} << level_) ask_for_keys(grown_, rows);
  const bool by_key = lines_after == 2 * kGroupLines;  // else the tag tells all
  for (const Moved& one : moved_) {
    const uint64_t mixed = by_key ? mix_key(rows.key(one.row)) : 0;
    const uint32_t line = line_in_group(one.tag, lines_after, mixed);
    place((size_t{line} << level) + group, one.tag, one.row);
  }

  if (grown_ < uint64_t{1} << level_) return;
  grown_ = 0;
  group_lines_ = lines_after;
  if (group_lines_ < 2 * kGroupLines) return;
  // Line j of group g of n is now line j/2 of group g, or for an odd j of group n+g: it stays where it is.
  group_lines_ = kGroupLines;
  ++level_;
  step_ = level_ < kWholeLevels ? kGroupLines : 1;
}

// Asks for the memory of the keys that take_out() will look at.
void SparseIndex::ask_for_keys(uint64_t group, const SparseRows& rows) const {
  const bool all = group_lines_ + step_ == 2 * kGroupLines;
  for (uint32_t j = 0; j < group_lines_; ++j) {
    const Line* const home = lines() + (size_t{j} << level_) + group;
    for (uint32_t i = 0; all && i < home->used(); ++i) __builtin_prefetch(rows.key_address(home->row(i)));
    for (const Line* line = home + 1; line <= home + home->reach(); ++line) {
      for (uint32_t i = 0; i < line->used(); ++i) {
        if (line->displaced(i)) __builtin_prefetch(rows.key_address(line->row(i)));
      }
    }
  }
}

// Those keys go to `moved_` that belong to this line and will not, or do not stand in it. With sixteen lines all do.
void SparseIndex::take_out(size_t at, uint32_t lines_after, const SparseRows& rows) {
  Line* const home = lines() + at;
  const bool all = lines_after == 2 * kGroupLines;
  for (uint32_t i = home->used(); i-- > 0;) {
    if (home->displaced(i)) continue;
    if (!all && kGiven[lines_after - kGroupLines][home->tag(i) & 255] != lines_after - 1) continue;
    moved_.push_back({home->tag(i), home->row(i)});
    home->remove(i);
  }
  const uint32_t reach = home->reach();
  if (reach == 0) return;
  for (Line* line = home + 1; line <= home + reach; ++line) {
    for (uint32_t i = line->used(); i-- > 0;) {
      if (!line->displaced(i) || home_of(mix_key(rows.key(line->row(i)))) != at) continue;
      moved_.push_back({line->tag(i), line->row(i)});
      line->remove(i);
    }
  }
  if (reach == kReachMax) {
    const auto [begin, end] = crowded_.equal_range(at);
    for (auto one = begin; one != end; ++one) moved_.push_back({tag_of(mix_key(rows.key(one->second))), one->second});
    crowded_.erase(begin, end);
  }
  home->set_reach(0);
}

void SparseIndex::insert(uint64_t mixed, uint32_t row) {
  place(home_of(mixed), tag_of(mixed), row);
  ++count_;
}

void SparseIndex::place(size_t home, uint32_t tag, uint32_t row) {
  Line* const first = lines() + home;
  for (uint32_t i = 0; i <= kReachMax; ++i) {
    if (first[i].used() == Line::kRows) continue;
    first[i].add(Line::slot(tag, i > 0), row);
    if (i > first->reach()) first->set_reach(i);
    return;
  }
  first->set_reach(kReachMax);
  crowded_.emplace(home, row);
}

}  // namespace pscloud

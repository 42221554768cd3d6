#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "engine/table/huge_memory.h"
#include "engine/table/index_line.h"
#include "engine/table/sparse_rows.h"

namespace pscloud {

// From a mixed key to a row number. One array of cache lines, each with up to eleven pairs of a 15-bit tag and a row. A
// key whose line is full stands in one of the seven that follow.
//
// It grows by one line at a time, so that no push waits long for it and all lines are about equally full: linear
// hashing, in groups. Some bits of a key give its group, and its tag gives the line of the group. All groups have eight
// lines at first; then one after the other gets a ninth, to which each of the eight gives its part, then a tenth, and
// so on; with the sixteenth each becomes two groups of eight. Line j of group g is line j * groups + g of the array:
// the new line is always the next of the array. While it is small, below 2^kWholeLevels groups, a group gets all eight
// new lines at once: that costs a fraction of the time for each key, and memory for up to 2.5 times the lines.
//
// Nothing is ever removed. Keys stand in the rows only; every call is given the same SparseRows.
class SparseIndex {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;
  static constexpr uint32_t kFurther = UINT32_MAX - 1;
  static constexpr uint32_t kRowsMax = uint32_t{1} << 30;

  SparseIndex();

  // A look-up in steps, so that memory can be asked for between them. First the line where a key belongs. Void after
  // grow_by().
  using Line = IndexLine;
  const Line* home(uint64_t mixed) const { return lines() + home_of(mixed); }
  // Then, from that line: a row that is that of this key in all but a few of 1000 cases, kNone if it shows none,
  // kFurther if the key may stand in one of the next lines.
  static uint32_t guess(const Line* home, uint64_t mixed);
  // From these, such a row or kNone.
  static uint32_t guess_further(const Line* home, uint64_t mixed);
  // kNone is certain only if this is false; else find() must be asked.
  bool is_crowded() const { return !crowded_.empty(); }

  // The row of this key; kNone if it has none.
  uint32_t find(uint64_t mixed, const SparseRows& rows) const;

  // Makes room for so many new keys.
  void grow_by(uint64_t keys, const SparseRows& rows);
  // The key must be absent, and room have been made.
  void insert(uint64_t mixed, uint32_t row);

  uint64_t bytes() const { return bytes_of(memory_.size(), crowded_.size()); }
  // What it will have at most with so many keys more.
  uint64_t bytes_with(uint64_t keys) const;

 private:
  static constexpr uint32_t kTagBits = 15;
  static constexpr uint32_t kReachMax = IndexLine::kReachMax;  // how far from its line a key may stand
  static constexpr uint32_t kGroupLines = 8;
  static constexpr uint32_t kWholeLevels = 14;
  static constexpr uint64_t kWholeLines = uint64_t{kGroupLines} << kWholeLevels;  // 8 MB, for a million keys
  struct Moved {
    uint32_t tag;
    uint32_t row;
  };

  // Tag and group use bits of their own, and none the top bits, which are the same for all keys of one owner among 256.
  static uint32_t tag_of(uint64_t mixed) { return mixed & ((1u << kTagBits) - 1); }
  size_t home_of(uint64_t mixed) const {
    const uint64_t group = mixed >> kTagBits & ((uint64_t{1} << level_) - 1);
    const uint32_t lines = group_lines_ + (group < grown_ ? step_ : 0);
    return (size_t{line_in_group(tag_of(mixed), lines, mixed)} << level_) + group;
  }
  // A group of sixteen is two of eight: line j of them is line 2j or 2j+1, by the bit that will choose between the two.
  uint32_t line_in_group(uint32_t tag, uint32_t lines, uint64_t mixed) const {
    const uint32_t first = tag >> (kTagBits - 3);
    const uint32_t split = 2 * first + (mixed >> (kTagBits + level_) & 1);
    const uint32_t given = kGiven[lines - kGroupLines][tag & 255];
    // No branches: half of the groups may have split.
    const uint32_t among_few = given == 0 ? first : given;
    return lines == 2 * kGroupLines ? split : among_few;
  }
  // To which of `kGroupLines + i` lines a tag with these last bits is given, 0: to none, it stays where it was first.
  // From one `i` to the next a tag stays or goes to the new line. The last, of sixteen lines, does not say.
  static const std::array<std::array<uint8_t, 256>, kGroupLines + 1> kGiven;

  Line* lines() const { return reinterpret_cast<Line*>(memory_.data()); }
  size_t line_count() const { return (size_t{group_lines_} << level_) + grown_ * step_; }
  static uint64_t bytes_of(uint64_t memory, uint64_t crowded) {
    constexpr uint64_t kNode = 48;  // of the map, about
    return sizeof(SparseIndex) + memory + crowded * kNode;
  }
  static uint64_t lines_for(uint64_t keys);
  uint64_t memory_for(uint64_t keys) const;
  void grow_group(const SparseRows& rows);
  void ask_for_keys(uint64_t group, const SparseRows& rows) const;
  void take_out(size_t at, uint32_t lines_after, const SparseRows& rows);
  void place(size_t home, uint32_t tag, uint32_t row);

  uint32_t level_ = 0;                  // there are 2^level_ groups
  uint32_t group_lines_ = kGroupLines;  // of those that have not grown
  uint32_t step_ = kGroupLines;         // by so many groups grow now
  uint64_t grown_ = 0;                  // groups that have so many more
  uint64_t count_ = 0;
  HugeMemory memory_;  // of the lines, and of kReachMax more for what belongs to the last
  std::unordered_multimap<uint64_t, uint32_t> crowded_;  // rows by home, of the few that found no place
  std::vector<Moved> moved_;                             // here to be used again
};

inline uint32_t SparseIndex::guess(const Line* home, uint64_t mixed) {
  const uint32_t mask = home->matches(Line::slot(tag_of(mixed), false));
  if (mask != 0) return home->row(static_cast<uint32_t>(std::countr_zero(mask)));
  return home->reach() == 0 ? kNone : kFurther;
}

inline uint32_t SparseIndex::guess_further(const Line* home, uint64_t mixed) {
  for (uint32_t i = 1; i <= home->reach(); ++i) {
    const uint32_t mask = home[i].matches(Line::slot(tag_of(mixed), true));
    if (mask != 0) return home[i].row(static_cast<uint32_t>(std::countr_zero(mask)));
  }
  return kNone;
}

}  // namespace pscloud

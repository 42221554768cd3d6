#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/sparse_rows.h"

namespace pscloud {

// From a mixed key to a row number. A cache line holds ten pairs of a 16-bit tag and a row; a full line goes on in the
// next. 256 segments, each of which grows alone, by half and at its own sizes: a step moves 1/256 of the index, and
// segments that fill evenly do not all grow at once. Nothing is ever removed.
// Keys stand in the rows only; every call is given the same SparseRows.
class SparseIndex {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;
  static constexpr size_t kSegments = 256;
  using SegmentCounts = std::array<uint32_t, kSegments>;

  // Not the top bits: these are the same for all keys of one owner among 256.
  static size_t segment_of(uint64_t mixed) { return mixed >> 48 & (kSegments - 1); }

  // Where the search for this key begins, to prefetch; null if nowhere.
  const void* home(uint64_t mixed) const {
    const Segment& segment = segments_[segment_of(mixed)];
    return segment.lines.empty() ? nullptr : &segment.lines[home_of(segment, mixed)];
  }

  // A row that is that of this key in all but a few of 10000 cases; kNone if the first line shows none.
  uint32_t guess(uint64_t mixed) const {
    const Segment& segment = segments_[segment_of(mixed)];
    if (segment.lines.empty()) return kNone;
    const Line& line = segment.lines[home_of(segment, mixed)];
    const uint32_t matches = line.matches(tag_of(mixed));
    return matches == 0 ? kNone : line.rows[static_cast<size_t>(std::countr_zero(matches))];
  }

  // The row of this key; kNone if it has none.
  uint32_t find(uint64_t mixed, const SparseRows& rows) const;

  // Grows the segments so that `more` keys of each fit. Before the inserts.
  void reserve(const SegmentCounts& more, const SparseRows& rows);

  // The key must be absent and room reserved.
  void insert(uint64_t mixed, uint32_t row);

  uint64_t bytes() const { return bytes_after({}); }
  // What it will have after reserve(more).
  uint64_t bytes_after(const SegmentCounts& more) const;

 private:
  static constexpr uint32_t kLineRows = 10;
  struct alignas(64) Line {
    std::array<uint16_t, kLineRows> tags{};
    uint32_t used = 0;
    std::array<uint32_t, kLineRows> rows{};

    // Bit i is set if place i has this tag. Without branches: where a tag stands cannot be predicted.
    uint32_t matches(uint16_t tag) const {
      uint32_t mask = 0;
      for (uint32_t i = 0; i < kLineRows; ++i) mask |= uint32_t{tags[i] == tag} << i;
      return mask & ((1u << used) - 1);
    }
  };
  static_assert(sizeof(Line) == 64);

  struct Segment {
    std::vector<Line> lines;
    uint64_t count = 0;
  };

  // Tag, line and segment each use bits of their own.
  static uint16_t tag_of(uint64_t mixed) { return static_cast<uint16_t>(mixed); }
  static size_t home_of(const Segment& segment, uint64_t mixed) {
    return (mixed >> 16 & 0xffffffff) * segment.lines.size() >> 32;
  }
  static size_t next(const Segment& segment, size_t at) { return at + 1 == segment.lines.size() ? 0 : at + 1; }
  size_t lines_for(size_t segment, uint64_t count) const;
  static void place(Segment& segment, uint64_t mixed, uint32_t row);

  std::array<Segment, kSegments> segments_;
};

}  // namespace pscloud

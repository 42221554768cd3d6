#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace pscloud {

// From a mixed key to a row number. A cache line holds ten pairs of a 16-bit tag and a row; a full line goes on in the
// next. 256 segments, each of which grows alone, by half: a step moves 1/256 of the index, not all of it.
// Nothing is ever removed. Rows know their keys: the index asks for them through `mixed_of(row)`.
class SparseIndex {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;
  static constexpr size_t kSegments = 256;
  using SegmentCounts = std::array<uint32_t, kSegments>;

  // Not the top bits: these are the same for all keys of one owner among 256.
  static size_t segment_of(uint64_t mixed) { return mixed >> 48 & (kSegments - 1); }

  // Brings the line where the search for this key begins.
  void prefetch(uint64_t mixed) const {
    const Segment& segment = segments_[segment_of(mixed)];
    if (!segment.lines.empty()) __builtin_prefetch(&segment.lines[home_of(segment, mixed)]);
  }

  // A row that is that of this key in all but a few of 10000 cases; kNone if the first line shows none.
  uint32_t guess(uint64_t mixed) const {
    const Segment& segment = segments_[segment_of(mixed)];
    if (segment.lines.empty()) return kNone;
    const Line& line = segment.lines[home_of(segment, mixed)];
    for (uint32_t i = 0; i < line.used; ++i) {
      if (line.tags[i] == tag_of(mixed)) return line.rows[i];
    }
    return kNone;
  }

  // The row of this key; kNone if it has none.
  template <class MixedOf>
  uint32_t find(uint64_t mixed, const MixedOf& mixed_of) const {
    const Segment& segment = segments_[segment_of(mixed)];
    if (segment.lines.empty()) return kNone;
    for (size_t at = home_of(segment, mixed);; at = next(segment, at)) {
      const Line& line = segment.lines[at];
      for (uint32_t i = 0; i < line.used; ++i) {
        if (line.tags[i] == tag_of(mixed) && mixed_of(line.rows[i]) == mixed) return line.rows[i];
      }
      if (line.used < kLineRows) return kNone;  // there is always a line that is not full
    }
  }

  // Grows the segments so that `more` keys of each fit. Before the inserts.
  template <class MixedOf>
  void reserve(const SegmentCounts& more, const MixedOf& mixed_of) {
    for (size_t i = 0; i < kSegments; ++i) {
      if (more[i] == 0) continue;
      Segment& segment = segments_[i];
      const size_t lines = lines_for(segment.lines.size(), segment.count + uint64_t{more[i]});
      if (lines == segment.lines.size()) continue;
      Segment grown{std::vector<Line>(lines), segment.count};
      for (const Line& line : segment.lines) {
        for (uint32_t j = 0; j < line.used; ++j) place(grown, mixed_of(line.rows[j]), line.rows[j]);
      }
      segment = std::move(grown);
    }
  }

  // The key must be absent and room reserved.
  void insert(uint64_t mixed, uint32_t row) {
    Segment& segment = segments_[segment_of(mixed)];
    place(segment, mixed, row);
    ++segment.count;
  }

  uint64_t bytes() const { return bytes_after({}); }
  // What it will have after reserve(more).
  uint64_t bytes_after(const SegmentCounts& more) const;

 private:
  static constexpr uint32_t kLineRows = 10;
  struct alignas(64) Line {
    std::array<uint16_t, kLineRows> tags{};
    uint32_t used = 0;
    std::array<uint32_t, kLineRows> rows{};
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
  static size_t lines_for(size_t lines, uint64_t count);
  static void place(Segment& segment, uint64_t mixed, uint32_t row);

  std::array<Segment, kSegments> segments_;
};

}  // namespace pscloud

#include "engine/sparse_index.h"

#include <algorithm>
#include <cmath>

#include "base/hash.h"

namespace pscloud {

uint32_t SparseIndex::find(uint64_t mixed, const SparseRows& rows) const {
  const Segment& segment = segments_[segment_of(mixed)];
  if (segment.lines.empty()) return kNone;
  const Key key = unmix_key(mixed);
  for (size_t at = home_of(segment, mixed);; at = next(segment, at)) {
    const Line& line = segment.lines[at];
    for (uint32_t left = line.matches(tag_of(mixed)); left != 0; left &= left - 1) {
      const uint32_t row = line.rows[static_cast<size_t>(std::countr_zero(left))];
      if (rows.key(row) == key) return row;
    }
    if (line.used < kLineRows) return kNone;  // there is always a line that is not full
  }
}

void SparseIndex::reserve(const SegmentCounts& more, const SparseRows& rows) {
  for (size_t i = 0; i < kSegments; ++i) {
    if (more[i] == 0) continue;
    Segment& segment = segments_[i];
    const size_t lines = lines_for(i, segment.count + more[i]);
    if (lines == segment.lines.size()) continue;
    Segment grown{std::vector<Line>(lines), segment.count};
    for (size_t at = 0; at < segment.lines.size(); ++at) {
      // The keys lie anywhere in memory: ask for those of a later line before using those of this one.
      const Line& ahead = segment.lines[std::min(at + 2, segment.lines.size() - 1)];
      for (uint32_t j = 0; j < ahead.used; ++j) __builtin_prefetch(rows.address(ahead.rows[j]));
      const Line& line = segment.lines[at];
      for (uint32_t j = 0; j < line.used; ++j) place(grown, mix_key(rows.key(line.rows[j])), line.rows[j]);
    }
    segment = std::move(grown);
  }
}

void SparseIndex::insert(uint64_t mixed, uint32_t row) {
  Segment& segment = segments_[segment_of(mixed)];
  place(segment, mixed, row);
  ++segment.count;
}

uint64_t SparseIndex::bytes_after(const SegmentCounts& more) const {
  uint64_t lines = 0;
  for (size_t i = 0; i < kSegments; ++i) lines += lines_for(i, segments_[i].count + more[i]);
  return sizeof *this + lines * sizeof(Line);
}

// The lines a segment will have when it holds `count` keys.
size_t SparseIndex::lines_for(size_t segment, uint64_t count) const {
  // At most 8.5 of 10 places taken: more, and searches often go on in the next line.
  const size_t lines = segments_[segment].lines.size();
  const uint64_t needed = (2 * count + 16) / 17;
  if (needed <= lines) return lines;
  // 1.5^(segment/256) times a power of 1.5, so that each segment has sizes of its own.
  double size = std::pow(1.5, static_cast<double>(segment) / kSegments);
  while (size < static_cast<double>(needed)) size *= 1.5;
  return static_cast<size_t>(size);
}

void SparseIndex::place(Segment& segment, uint64_t mixed, uint32_t row) {
  size_t at = home_of(segment, mixed);
  while (segment.lines[at].used == kLineRows) at = next(segment, at);
  Line& line = segment.lines[at];
  line.tags[line.used] = tag_of(mixed);
  line.rows[line.used] = row;
  ++line.used;
}

}  // namespace pscloud

#include "engine/sparse_index.h"

#include <algorithm>

namespace pscloud {

uint64_t SparseIndex::bytes_after(const SegmentCounts& more) const {
  uint64_t lines = 0;
  for (size_t i = 0; i < kSegments; ++i) {
    const Segment& segment = segments_[i];
    lines += lines_for(segment.lines.size(), segment.count + more[i]);
  }
  return sizeof *this + lines * sizeof(Line);
}

size_t SparseIndex::lines_for(size_t lines, uint64_t count) {
  // At most 8.5 of 10 places taken: more, and searches often go on in the next line.
  while (2 * count > 17 * lines) lines += std::max<size_t>(1, lines / 2);
  return lines;
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

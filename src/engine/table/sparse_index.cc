#include "engine/table/sparse_index.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "base/hash.h"

namespace pscloud {
namespace {

// At most 9 of 10 places taken: more, and searches often go on in the next line.
constexpr uint64_t kKeysPerLine = 9;
// Small steps cost time (each moves all keys of a segment: 7 moves for each key that comes in), large steps cost
// memory. These two give 7.6 bytes a key.
constexpr double kStep = 1.15;

}  // namespace

uint32_t SparseIndex::guess_further(uint64_t mixed) const {
  const Segment& segment = segments_[segment_of(mixed)];
  size_t at = home_of(segment, mixed);
  do {  // there is always a line that is not full
    at = next(segment, at);
    const uint32_t mask = line(segment, at).matches(tag_of(mixed));
    if (mask != 0) return line(segment, at).rows[static_cast<size_t>(std::countr_zero(mask))];
  } while (line(segment, at).used == kLineRows);
  return kNone;
}

uint32_t SparseIndex::find(uint64_t mixed, const SparseRows& rows) const {
  const Segment& segment = segments_[segment_of(mixed)];
  if (segment.size == 0) return kNone;
  const Key key = unmix_key(mixed);
  for (size_t at = home_of(segment, mixed);; at = next(segment, at)) {
    const Line& here = line(segment, at);
    for (uint32_t left = here.matches(tag_of(mixed)); left != 0; left &= left - 1) {
      const uint32_t row = here.rows[static_cast<size_t>(std::countr_zero(left))];
      if (rows.key(row) == key) return row;
    }
    if (here.used < kLineRows) return kNone;
  }
}

SparseIndex::Growth SparseIndex::plan(std::span<const uint64_t> new_mixed, const SparseRows& rows) const {
  Growth growth;
  const bool split = segments_.size() == 1 && count_ + new_mixed.size() > kKeysUnsplit;
  const size_t segments = split ? kSegments : segments_.size();
  growth.counts.resize(segments);
  if (split) {
    for (uint32_t row = 0; row < count_; ++row) ++growth.counts[segment_of(mix_key(rows.key(row)), segments)];
  } else {
    for (size_t i = 0; i < segments; ++i) growth.counts[i] = segments_[i].count;
  }
  for (const uint64_t mixed : new_mixed) ++growth.counts[segment_of(mixed, segments)];
  uint64_t blocks = 0;
  for (size_t i = 0; i < segments; ++i) blocks += blocks_for(lines_for(growth, i));
  growth.bytes = bytes_for(segments, blocks);
  return growth;
}

void SparseIndex::grow(const Growth& growth, const SparseRows& rows) {
  if (splits(growth)) return split(growth, rows);
  uint64_t blocks = 0;
  for (size_t i = 0; i < segments_.size(); ++i) blocks += blocks_for(lines_for(growth, i));
  memory_.grow(HugeMemory::whole_pages(blocks * kBlockLines * sizeof(Line)));
  std::vector<Line> old;
  for (size_t i = 0; i < segments_.size(); ++i) {
    Segment& segment = segments_[i];
    const uint32_t size = lines_for(growth, i);
    if (size == segment.size) continue;
    old.resize(segment.size);
    for (size_t at = 0; at < old.size(); ++at) old[at] = std::exchange(line(segment, at), Line{});
    resize(segment, size);
    for (size_t at = 0; at < old.size(); ++at) {
      // The keys lie anywhere in memory: ask for those of a later line before using those of this one.
      const Line& ahead = old[std::min(at + 3, old.size() - 1)];
      for (uint32_t j = 0; j < ahead.used; ++j) __builtin_prefetch(rows.key_address(ahead.rows[j]));
      for (uint32_t j = 0; j < old[at].used; ++j) place(segment, mix_key(rows.key(old[at].rows[j])), old[at].rows[j]);
    }
  }
}

// From the one segment to many.
void SparseIndex::split(const Growth& growth, const SparseRows& rows) {
  std::vector<Segment> parts(kSegments);
  uint64_t blocks = 0;
  for (size_t i = 0; i < kSegments; ++i) blocks += blocks_for(lines_for(growth, i));
  memory_.grow(HugeMemory::whole_pages(blocks * kBlockLines * sizeof(Line)));
  std::fill_n(lines(), blocks_ * kBlockLines, Line{});
  blocks_ = 0;
  for (size_t i = 0; i < kSegments; ++i) resize(parts[i], lines_for(growth, i));
  segments_ = std::move(parts);
  const uint64_t count = std::exchange(count_, 0);
  for (uint32_t row = 0; row < count; ++row) insert(mix_key(rows.key(row)), row);
}

// Takes as many new blocks as it needs.
void SparseIndex::resize(Segment& segment, uint32_t size) {
  const uint64_t had = blocks_for(segment.size);
  const uint64_t needed = blocks_for(size);
  segment.size = size;
  if (needed == had) return;
  auto blocks = std::make_unique_for_overwrite<uint32_t[]>(needed);
  if (had > 0) std::memcpy(blocks.get(), segment.blocks.get(), had * sizeof(uint32_t));
  for (uint64_t i = had; i < needed; ++i) blocks[i] = static_cast<uint32_t>(blocks_++ * kBlockLines);
  segment.blocks = std::move(blocks);
}

void SparseIndex::insert(uint64_t mixed, uint32_t row) {
  Segment& segment = segments_[segment_of(mixed)];
  place(segment, mixed, row);
  ++segment.count;
  ++count_;
}

void SparseIndex::place(Segment& segment, uint64_t mixed, uint32_t row) {
  size_t at = home_of(segment, mixed);
  while (line(segment, at).used == kLineRows) at = next(segment, at);
  Line& here = line(segment, at);
  here.tags[here.used] = tag_of(mixed);
  here.rows[here.used] = row;
  ++here.used;
}

uint64_t SparseIndex::bytes_most(uint64_t keys) const {
  // Of each segment: its last line and its last block may be almost empty, and its lines one step above what it needs.
  const double lines = static_cast<double>((count_ + keys) / kKeysPerLine + 2 * kSegments) * kStep;
  return bytes_for(kSegments, blocks_for(static_cast<uint64_t>(lines)) + kSegments);
}

uint64_t SparseIndex::bytes_for(size_t segments, uint64_t blocks) {
  return sizeof(SparseIndex) + segments * sizeof(Segment) + blocks * sizeof(uint32_t) +
         HugeMemory::whole_pages(blocks * kBlockLines * sizeof(Line));
}

// The lines a segment will have when it holds as many keys as planned.
uint32_t SparseIndex::lines_for(const Growth& growth, size_t segment) const {
  const uint64_t needed = (growth.counts[segment] + kKeysPerLine - 1) / kKeysPerLine;
  if (splits(growth)) {
    // Spread over one step, so that segments of equal fill grow at different times.
    const double spread = std::pow(kStep, static_cast<double>(segment) / kSegments);
    return static_cast<uint32_t>(std::ceil(static_cast<double>(needed) * spread));
  }
  const uint32_t lines = segments_[segment].size;
  if (needed <= lines) return lines;
  auto grown = static_cast<double>(std::max(lines, 1u));
  while (grown < static_cast<double>(needed)) grown *= kStep;
  return static_cast<uint32_t>(grown);
}

}  // namespace pscloud

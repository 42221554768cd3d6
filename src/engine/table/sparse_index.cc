#include "engine/table/sparse_index.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/hash.h"

namespace pscloud {
namespace {

// At most 92 of 100 places taken: more, and searches often go on in the next line.
constexpr uint64_t kKeysPerTenLines = 92;
// Small steps cost time (each moves all keys of a segment: 7 moves for each key that comes in), large steps cost
// memory. These two give 7.6 bytes a key.
constexpr double kStep = 1.15;
// What 1 / ln(kStep) says, and a little more.
constexpr uint64_t kMovesPerKey = 8;
// From this part of its keys on a segment may grow early.
constexpr double kEarly = 0.985;

uint64_t lines_needed(uint64_t keys) { return (10 * keys + kKeysPerTenLines - 1) / kKeysPerTenLines; }

}  // namespace

uint32_t SparseIndex::guess_further(uint64_t mixed) const {
  const size_t segment = segment_of(mixed);
  size_t at = home_of(segment, mixed);
  do {  // there is always a line that is not full
    at = next(segment, at);
    const uint32_t mask = line(segment, at).matches(tag_of(mixed));
    if (mask != 0) return line(segment, at).rows[static_cast<size_t>(std::countr_zero(mask))];
  } while (line(segment, at).used == kLineRows);
  return kNone;
}

uint32_t SparseIndex::find(uint64_t mixed, const SparseRows& rows) const {
  const size_t segment = segment_of(mixed);
  if (segments_[segment].size == 0) return kNone;
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

SparseIndex::Growth SparseIndex::plan(std::span<const uint64_t> new_mixed, const SparseRows& rows, bool early) const {
  const bool split = segments_.size() == 1 && count_ + new_mixed.size() > kKeysUnsplit;
  const size_t segments = split ? kSegments : segments_.size();
  std::vector<uint32_t> counts(segments);
  if (split) {
    for (uint32_t row = 0; row < count_; ++row) ++counts[segment_of(mix_key(rows.key(row)), segments)];
  } else {
    std::ranges::transform(segments_, counts.begin(), &Segment::count);
  }
  for (const uint64_t mixed : new_mixed) ++counts[segment_of(mixed, segments)];

  Growth growth;
  growth.lines.resize(segments);
  uint64_t moves = 0;
  for (size_t i = 0; i < segments; ++i) {
    const uint64_t needed = lines_needed(counts[i]);
    if (split) {
      // Spread over one step, so that segments of equal fill grow at different times.
      const double spread = std::pow(kStep, static_cast<double>(i) / kSegments);
      growth.lines[i] = static_cast<uint32_t>(std::ceil(static_cast<double>(needed) * spread));
    } else {
      growth.lines[i] = grown(i, needed);
      if (growth.lines[i] != segments_[i].size) moves += segments_[i].count;
    }
  }
  for (size_t i = 0; i < segments && early && !split && moves < kMovesPerKey * new_mixed.size(); ++i) {
    const uint32_t lines = segments_[i].size;
    if (growth.lines[i] != lines || counts[i] < kEarly * static_cast<double>(lines * kKeysPerTenLines) / 10) continue;
    growth.lines[i] = grown(i, uint64_t{lines} + 1);
    moves += segments_[i].count;
  }
  const uint64_t blocks = std::accumulate(growth.lines.begin(), growth.lines.end(), uint64_t{0},
                                          [](uint64_t sum, uint32_t lines) { return sum + blocks_for(lines); });
  growth.bytes = bytes_for(segments, stride_for(growth.lines), blocks);
  return growth;
}

void SparseIndex::grow(const Growth& growth, const SparseRows& rows) {
  if (splits(growth)) return split(growth, rows);
  make_room(growth);
  std::vector<Line> old;
  for (size_t i = 0; i < segments_.size(); ++i) {
    if (growth.lines[i] == segments_[i].size) continue;
    old.resize(segments_[i].size);
    for (size_t at = 0; at < old.size(); ++at) old[at] = std::exchange(line(i, at), Line{});
    resize(i, growth.lines[i]);
    for (size_t at = 0; at < old.size(); ++at) {
      // The keys lie anywhere in memory: ask for those of a later line before using those of this one.
      const Line& ahead = old[std::min(at + 8, old.size() - 1)];
      for (uint32_t j = 0; j < ahead.used; ++j) __builtin_prefetch(rows.key_address(ahead.rows[j]));
      for (uint32_t j = 0; j < old[at].used; ++j) place(i, mix_key(rows.key(old[at].rows[j])), old[at].rows[j]);
    }
  }
}

// From the one segment to many.
void SparseIndex::split(const Growth& growth, const SparseRows& rows) {
  std::fill_n(lines(), blocks_ * kBlockLines, Line{});
  blocks_ = 0;
  stride_ = 0;
  segments_ = std::vector<Segment>(kSegments);
  make_room(growth);
  for (size_t i = 0; i < kSegments; ++i) resize(i, growth.lines[i]);
  const uint64_t count = std::exchange(count_, 0);
  for (uint32_t row = 0; row < count; ++row) insert(mix_key(rows.key(row)), row);
}

// Memory for all blocks and for the lists of them. Lists that become longer move apart, from the last on.
void SparseIndex::make_room(const Growth& growth) {
  uint64_t needed = 0;
  for (const uint32_t lines : growth.lines) needed += blocks_for(lines);
  memory_.grow(HugeMemory::whole_pages(needed * kBlockLines * sizeof(Line)));
  const uint64_t stride = stride_for(growth.lines);
  if (stride == stride_) return;
  block_memory_.grow(HugeMemory::whole_pages(segments_.size() * stride * sizeof(uint32_t)));
  for (size_t i = segments_.size(); i-- > 1;) {
    const uint32_t* list = blocks() + i * stride_;
    std::copy_backward(list, list + blocks_for(segments_[i].size),
                       blocks() + i * stride + blocks_for(segments_[i].size));
  }
  stride_ = stride;
}

// Takes as many new blocks as it needs.
void SparseIndex::resize(size_t segment, uint32_t size) {
  for (uint64_t i = blocks_for(segments_[segment].size); i < blocks_for(size); ++i)
    blocks()[segment * stride_ + i] = static_cast<uint32_t>(blocks_++ * kBlockLines);
  segments_[segment].size = size;
}

void SparseIndex::insert(uint64_t mixed, uint32_t row) {
  const size_t segment = segment_of(mixed);
  place(segment, mixed, row);
  ++segments_[segment].count;
  ++count_;
}

void SparseIndex::place(size_t segment, uint64_t mixed, uint32_t row) {
  size_t at = home_of(segment, mixed);
  while (line(segment, at).used == kLineRows) at = next(segment, at);
  Line& here = line(segment, at);
  here.tags[here.used] = tag_of(mixed);
  here.rows[here.used] = row;
  ++here.used;
}

uint64_t SparseIndex::bytes_most(uint64_t keys) const {
  // Of each segment: its last line and its last block may be almost empty, and its lines one early step above what it
  // needs. One segment may get all the keys, and the longest list decides the length of all.
  constexpr double kMost = kStep / kEarly;
  const double lines = static_cast<double>(lines_needed(count_ + keys) + 2 * kSegments) * kMost;
  const uint32_t longest = std::ranges::max(segments_, {}, &Segment::size).size;
  const double list = static_cast<double>(blocks_for(longest + lines_needed(keys) + 2)) * kMost * 2;
  return bytes_for(kSegments, static_cast<uint64_t>(list) + 2, blocks_for(static_cast<uint64_t>(lines)) + kSegments);
}

// By a quarter: they are small beside the blocks.
uint64_t SparseIndex::stride_for(const std::vector<uint32_t>& lines) const {
  const uint64_t longest = blocks_for(*std::ranges::max_element(lines));
  const uint64_t had = lines.size() == segments_.size() ? stride_ : 0;
  return longest <= had ? had : longest + longest / 4;
}

uint64_t SparseIndex::bytes_for(size_t segments, uint64_t stride, uint64_t blocks) {
  return sizeof(SparseIndex) + segments * sizeof(Segment) +
         HugeMemory::whole_pages(segments * stride * sizeof(uint32_t)) +
         HugeMemory::whole_pages(blocks * kBlockLines * sizeof(Line));
}

// The lines a segment will have when it needs so many.
uint32_t SparseIndex::grown(size_t segment, uint64_t needed) const {
  const uint32_t lines = segments_[segment].size;
  if (needed <= lines) return lines;
  auto size = static_cast<double>(std::max(lines, 1u));
  while (size < static_cast<double>(needed)) size *= kStep;
  return static_cast<uint32_t>(size);
}

}  // namespace pscloud

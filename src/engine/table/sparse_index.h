#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "engine/table/huge_memory.h"
#include "engine/table/sparse_rows.h"

namespace pscloud {

// From a mixed key to a row number. A cache line holds ten pairs of a 16-bit tag and a row; a full line goes on in the
// next. A small index is one segment. A large one has 1024, each of which grows alone and at its own sizes: a step
// moves 1/1024 of the keys, and segments that fill evenly do not all grow at once. A segment is a list of blocks of
// lines, all from one piece of memory: it grows where it is, leaves no holes, and all of them lie on huge pages.
// Nothing is ever removed. Keys stand in the rows only; every call is given the same SparseRows.
class SparseIndex {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;
  static constexpr uint32_t kFurther = UINT32_MAX - 1;
  static constexpr uint32_t kRowsMax = UINT32_MAX - 1;

  SparseIndex() : segments_(1) {}

  // A look-up in steps, so that memory can be asked for between them. First the line where the search for a key begins;
  // null if there is none at all. Void after grow().
  struct Line;
  const Line* home(uint64_t mixed) const {
    const size_t segment = segment_of(mixed);
    return segments_[segment].size == 0 ? nullptr : &line(segment, home_of(segment, mixed));
  }
  // Then, from that line: a row that is that of this key in all but a few of 10000 cases, kNone if the key has none,
  // kFurther if the line is full and does not show it.
  static uint32_t guess(const Line* home, uint64_t mixed);
  // If further, the next line, to ask for it, and from all that follow: such a row or kNone.
  const Line* after_home(uint64_t mixed) const {
    const size_t segment = segment_of(mixed);
    return &line(segment, next(segment, home_of(segment, mixed)));
  }
  uint32_t guess_further(uint64_t mixed) const;

  // The row of this key; kNone if it has none.
  uint32_t find(uint64_t mixed, const SparseRows& rows) const;

  // What must grow before new keys are inserted.
  struct Growth {
    std::vector<uint32_t> lines;  // of each segment afterwards
    uint64_t bytes = 0;           // of the whole index afterwards
  };
  // `early`: segments that are almost full grow too, as many as make up for what this push should do on average. So the
  // work is the same for every push, where chance would let many segments come to their end in one.
  Growth plan(std::span<const uint64_t> new_mixed, const SparseRows& rows, bool early) const;
  void grow(const Growth& growth, const SparseRows& rows);

  // The key must be absent and have been planned for.
  void insert(uint64_t mixed, uint32_t row);

  uint64_t bytes() const { return bytes_for(segments_.size(), stride_, blocks_); }
  // No plan of `keys` new keys will have more.
  uint64_t bytes_most(uint64_t keys) const;

 private:
  static constexpr size_t kSegments = 1024;
  // One segment of so many keys grows in a few ms, the time of one large push.
  static constexpr uint64_t kKeysUnsplit = 1 << 17;
  static constexpr uint32_t kLineRows = 10;
  static constexpr uint32_t kBlockLines = 16;
  struct Segment {
    uint32_t size = 0;   // lines
    uint32_t count = 0;  // keys
  };

  // Tag, line and segment each use bits of their own, and none the top bits, which are the same for all keys of one
  // owner among 256.
  static uint16_t tag_of(uint64_t mixed) { return static_cast<uint16_t>(mixed); }
  size_t home_of(size_t segment, uint64_t mixed) const {
    return (mixed >> 16 & 0x3fffffff) * segments_[segment].size >> 30;
  }
  static size_t segment_of(uint64_t mixed, size_t segments) { return mixed >> 46 & (segments - 1); }
  size_t segment_of(uint64_t mixed) const { return segment_of(mixed, segments_.size()); }
  size_t next(size_t segment, size_t at) const { return at + 1 == segments_[segment].size ? 0 : at + 1; }
  Line* lines() const { return reinterpret_cast<Line*>(memory_.data()); }
  Line& line(size_t segment, size_t at) const;

  uint32_t* blocks() const { return reinterpret_cast<uint32_t*>(block_memory_.data()); }

  static uint64_t blocks_for(uint64_t lines) { return (lines + kBlockLines - 1) / kBlockLines; }
  uint64_t stride_for(const std::vector<uint32_t>& lines) const;
  static uint64_t bytes_for(size_t segments, uint64_t stride, uint64_t blocks);
  bool splits(const Growth& growth) const { return growth.lines.size() != segments_.size(); }
  uint32_t grown(size_t segment, uint64_t lines) const;
  void make_room(const Growth& growth);
  void split(const Growth& growth, const SparseRows& rows);
  void resize(size_t segment, uint32_t size);
  void place(size_t segment, uint64_t mixed, uint32_t row);

  std::vector<Segment> segments_;  // 1 or kSegments
  uint64_t count_ = 0;
  uint64_t blocks_ = 0;
  HugeMemory memory_;  // of all blocks
  // Of each segment the number of the first line of each of its blocks, `stride_` of them.
  uint64_t stride_ = 0;
  HugeMemory block_memory_;
};

struct alignas(64) SparseIndex::Line {
  std::array<uint16_t, kLineRows> tags{};
  uint32_t used = 0;
  std::array<uint32_t, kLineRows> rows{};

  // Bit i is set if place i has this tag. Without branches: where a tag stands cannot be predicted.
  uint32_t matches(uint16_t tag) const {
#if defined(__SSE2__)
    // Tags 0-7 and 2-9 at once. g++ makes ten comparisons of the loop below.
    const __m128i sought = _mm_set1_epi16(static_cast<int16_t>(tag));
    const __m128i low = _mm_load_si128(reinterpret_cast<const __m128i*>(tags.data()));
    const __m128i high = _mm_loadu_si128(reinterpret_cast<const __m128i*>(tags.data() + 2));
    const __m128i equal = _mm_packs_epi16(_mm_cmpeq_epi16(low, sought), _mm_cmpeq_epi16(high, sought));
    const auto bits = static_cast<uint32_t>(_mm_movemask_epi8(equal));
    const uint32_t mask = (bits & 0xff) | (bits >> 6 & 0x300);
#else
    uint32_t mask = 0;
    for (uint32_t i = 0; i < kLineRows; ++i) mask |= uint32_t{tags[i] == tag} << i;
#endif
    return mask & ((1u << used) - 1);
  }
};
static_assert(sizeof(SparseIndex::Line) == 64);

inline SparseIndex::Line& SparseIndex::line(size_t segment, size_t at) const {
  return lines()[blocks()[segment * stride_ + at / kBlockLines] + at % kBlockLines];
}

inline uint32_t SparseIndex::guess(const Line* home, uint64_t mixed) {
  if (home == nullptr) return kNone;
  const uint32_t mask = home->matches(tag_of(mixed));
  if (mask != 0) return home->rows[static_cast<size_t>(std::countr_zero(mask))];
  return home->used < kLineRows ? kNone : kFurther;
}

}  // namespace pscloud

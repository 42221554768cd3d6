#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace pscloud {

// Eleven tags, each with a bit that says that the key belongs to a line before; then eleven rows of 30 bits; then how
// many there are, and how far keys stand that belong here. With ten pairs of whole words more than twice as many
// searches would go on in the next line.
class alignas(64) IndexLine {
 public:
  static constexpr uint32_t kRows = 11;
  static constexpr uint32_t kReachMax = 7;

  static uint16_t slot(uint32_t tag, bool displaced) { return static_cast<uint16_t>(tag << 1 | uint32_t{displaced}); }

  uint32_t used() const { return load<uint16_t>(62) >> 10 & 15; }
  // How far keys stand that belong here, at most: 0, 1, 3 or 7.
  uint32_t reach() const { return (1u << (load<uint16_t>(62) >> 14)) - 1; }
  void set_reach(uint32_t far) {
    store(62, static_cast<uint16_t>((load<uint16_t>(62) & 0x3fff) | static_cast<uint32_t>(std::bit_width(far)) << 14));
  }
  uint32_t tag(uint32_t at) const { return load<uint16_t>(2 * at) >> 1; }
  bool displaced(uint32_t at) const { return load<uint16_t>(2 * at) & 1; }
  uint32_t row(uint32_t at) const {
    const auto [byte, shift] = place_of(at);
    return static_cast<uint32_t>(load<uint64_t>(byte) >> shift) & kRowMask;
  }

  // To a line that is not full.
  void add(uint16_t slot, uint32_t row) {
    const uint32_t at = used();
    set(at, slot, row);
    set_used(at + 1);
  }
  // The last one takes its place.
  void remove(uint32_t at) {
    const uint32_t last = used() - 1;
    set(at, load<uint16_t>(2 * last), row(last));
    set_used(last);
  }

  // Bit i is set if place i has this slot. Without branches: where it stands cannot be predicted.
  uint32_t matches(uint16_t slot) const {
#if defined(__SSE2__)
    // Places 0-7 and 3-10 at once. g++ makes eleven comparisons of the loop below.
    const __m128i sought = _mm_set1_epi16(static_cast<int16_t>(slot));
    const __m128i low = _mm_load_si128(reinterpret_cast<const __m128i*>(bytes_.data()));
    const __m128i high = _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes_.data() + 6));
    const __m128i equal = _mm_packs_epi16(_mm_cmpeq_epi16(low, sought), _mm_cmpeq_epi16(high, sought));
    const auto bits = static_cast<uint32_t>(_mm_movemask_epi8(equal));
    const uint32_t mask = (bits & 0xff) | (bits >> 5 & 0x700);
#else
    uint32_t mask = 0;
    for (uint32_t i = 0; i < kRows; ++i) mask |= uint32_t{load<uint16_t>(2 * i) == slot} << i;
#endif
    return mask & ((1u << used()) - 1);
  }

 private:
  static constexpr uint32_t kRowBits = 30;
  static constexpr uint32_t kRowMask = (1u << kRowBits) - 1;

  template <class T>
  T load(size_t at) const {
    T value;
    std::memcpy(&value, &bytes_[at], sizeof value);
    return value;
  }
  template <class T>
  void store(size_t at, T value) {
    std::memcpy(&bytes_[at], &value, sizeof value);
  }
  // The byte from which eight are read, and how far the row is in them.
  static std::pair<size_t, uint32_t> place_of(uint32_t at) {
    const uint32_t bit = 16 * kRows + kRowBits * at;
    const uint32_t byte = std::min(bit / 8, 56u);
    return {byte, bit - 8 * byte};
  }
  void set(uint32_t at, uint16_t slot, uint32_t row) {
    store(size_t{2} * at, slot);
    const auto [byte, shift] = place_of(at);
    store(byte, (load<uint64_t>(byte) & ~(uint64_t{kRowMask} << shift)) | uint64_t{row} << shift);
  }
  void set_used(uint32_t used) { store(62, static_cast<uint16_t>((load<uint16_t>(62) & ~(15u << 10)) | used << 10)); }

  std::array<std::byte, 64> bytes_{};
};
static_assert(sizeof(IndexLine) == 64);

}  // namespace pscloud

#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace pscloud {

// Numbers in text, eight characters at a time. All of these may read this many bytes beyond the end of what they are
// given: who calls makes sure that they are there and are no digits.
inline constexpr size_t kScanPadding = 64;

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr bool is_blank(char c) { return c == ' ' || c == '\t'; }
inline const char* skip_blanks(const char* at, const char* end) {
  while (at < end && is_blank(*at)) ++at;
  return at;
}

// Not within the functions: g++ would build them on the stack each time.
inline constexpr uint64_t kPowersOfTen[] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000};
inline constexpr double kTenths[] = {1e0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7};

// How many of the eight characters at `at` are digits before the first that is none.
inline size_t leading_digits(uint64_t eight) {
  const uint64_t x = eight ^ 0x3030303030303030;  // a digit is now its value
  // A byte above 9, or with its top bit set, ends with the top bit set.
  const uint64_t others = (x | ((x & 0x7f7f7f7f7f7f7f7f) + 0x7676767676767676)) & 0x8080808080808080;
  return static_cast<size_t>(std::countr_zero(others)) / 8;  // 8 if there is none
}

// The first `count` of eight characters, 0 < count <= 8, as their values if they are digits, with zeros in front.
inline uint64_t values_of(uint64_t eight, size_t count) { return (eight - 0x3030303030303030) << (64 - 8 * count); }
// Whether they are digits, of what can only be a digit or a point.
inline bool all_digits(uint64_t values) { return (values & 0xf0f0f0f0f0f0f0f0) == 0; }
// The number they write.
inline uint32_t joined(uint64_t values) {
  values = (values * 10 + (values >> 8)) & 0x00ff00ff00ff00ff;  // pairs
  values = (values * 100 + (values >> 16)) & 0x0000ffff0000ffff;
  return static_cast<uint32_t>(values * 10000 + (values >> 32));
}

// The number that the first `count` of the eight characters write; count > 0.
inline uint32_t number_of(uint64_t eight, size_t count) { return joined(values_of(eight, count)); }

inline uint64_t load_eight(const char* at) {
  uint64_t eight;
  std::memcpy(&eight, at, sizeof eight);
  return eight;
}

// Digits at `at`. Returns what follows them; null if there are none, or they are more than 64 bits hold.
inline const char* scan_u64(const char* at, uint64_t& value) {
  uint64_t eight = load_eight(at);
  size_t count = leading_digits(eight);
  if (count == 0) return nullptr;
  uint64_t result = number_of(eight, count);
  at += count;
  while (count == 8) {
    eight = load_eight(at);
    count = leading_digits(eight);
    if (count == 0) break;
    if (__builtin_mul_overflow(result, kPowersOfTen[count], &result) ||
        __builtin_add_overflow(result, number_of(eight, count), &result)) {
      return nullptr;
    }
    at += count;
  }
  value = result;
  return at;
}

// The number that the first `count` of eight characters write, all of them digits but for a point at most; 0 < count
// < 8. False if there is no digit, or a second point. Correctly rounded: so few digits are exact as a double, and a
// product that is a little off is never near the middle of two floats. Without branches: texts have numbers of all
// lengths.
inline bool short_float_of(uint64_t eight, size_t count, float& value) {
  const uint64_t differ = eight ^ 0x2e2e2e2e2e2e2e2e;  // a point is now zero
  const uint64_t within = (uint64_t{1} << (8 * count)) - 1;
  const uint64_t points = (differ - 0x0101010101010101) & ~differ & 0x8080808080808080 & within;
  const size_t has_point = points != 0;
  const size_t whole = std::min(static_cast<size_t>(std::countr_zero(points)) / 8, count);  // digits before it
  const uint64_t before = (uint64_t{1} << (8 * whole)) - 1;
  const size_t digits = std::max<size_t>(count - has_point, 1);
  value = static_cast<float>(number_of((eight & before) | (eight >> 8 & ~before), digits) * kTenths[digits - whole]);
  return count > has_point && (points & (points - 1)) == 0;
}

// The same of a digit, a point and one or two digits, as counts and shares most often are written, in half the time.
// False if it is something else.
inline bool tiny_float_of(uint64_t eight, size_t count, float& value) {
  if (count - 3 > 1) return false;
  const uint64_t within = (uint64_t{1} << (8 * count)) - 1;
  const uint64_t values = (eight ^ 0x30302e30) & within;  // '0', '.', '0', '0'
  const uint64_t hundredths = (values & 0xf) * 100 + (values >> 16 & 0xf) * 10 + (values >> 24);
  value = static_cast<float>(static_cast<double>(hundredths) * 0.01);
  return (values & 0xf0f0fff0) == 0;
}

// Bit i is set if character i of the 64 at `at` is neither a digit nor a point.
inline uint64_t separators_in_64(const char* at) {
  uint64_t numbers = 0;
#if defined(__SSE2__)
  for (int i = 0; i < 4; ++i) {
    const __m128i text = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at + 16 * i));
    const __m128i above_zero = _mm_sub_epi8(text, _mm_set1_epi8('0'));
    const __m128i digits = _mm_cmpeq_epi8(_mm_min_epu8(above_zero, _mm_set1_epi8(9)), above_zero);
    const __m128i points = _mm_cmpeq_epi8(text, _mm_set1_epi8('.'));
    const auto bits = static_cast<uint32_t>(_mm_movemask_epi8(_mm_or_si128(digits, points)));
    numbers |= uint64_t{bits} << (16 * i);
  }
#else
  for (int i = 0; i < 64; ++i) numbers |= uint64_t{is_digit(at[i]) || at[i] == '.'} << i;
#endif
  return ~numbers;
}

// A decimal number at `at`, before `end`: sign, digits, point, exponent. Correctly rounded. Returns what follows it;
// null if there is none, or one too large for a float.
const char* scan_float(const char* at, const char* end, float& value);

}  // namespace pscloud

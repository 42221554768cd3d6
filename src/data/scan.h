#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace pscloud {

// Numbers in text, eight characters at a time. All of these may read this many bytes beyond the end of what they are
// given: who calls makes sure that they are there and are no digits.
inline constexpr size_t kScanPadding = 8;

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr bool is_blank(char c) { return c == ' ' || c == '\t'; }
inline const char* skip_blanks(const char* at, const char* end) {
  while (at < end && is_blank(*at)) ++at;
  return at;
}

// Not within the functions: g++ would build them on the stack each time.
inline constexpr uint64_t kPowersOfTen[] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000};
inline constexpr double kTenths[] = {1e0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6};

// How many of the eight characters at `at` are digits before the first that is none.
inline size_t leading_digits(uint64_t eight) {
  const uint64_t x = eight ^ 0x3030303030303030;  // a digit is now its value
  // A byte above 9, or with its top bit set, ends with the top bit set.
  const uint64_t others = (x | ((x & 0x7f7f7f7f7f7f7f7f) + 0x7676767676767676)) & 0x8080808080808080;
  return static_cast<size_t>(std::countr_zero(others)) / 8;  // 8 if there is none
}

// The number that the first `count` of the eight characters write; count > 0.
inline uint32_t number_of(uint64_t eight, size_t count) {
  uint64_t x = (eight - 0x3030303030303030) << (64 - 8 * count);  // zeros in front
  x = (x * 10 + (x >> 8)) & 0x00ff00ff00ff00ff;                   // pairs
  x = (x * 100 + (x >> 16)) & 0x0000ffff0000ffff;
  return static_cast<uint32_t>(x * 10000 + (x >> 32));
}

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

// A number without sign and exponent that has at most seven characters, as most have. Correctly rounded. Returns what
// follows it; null if this is none of these: scan_float() tells.
inline const char* scan_short_float(const char* at, float& value) {
  uint64_t eight = load_eight(at);
  const size_t whole = leading_digits(eight);
  if (whole == 0 || whole == 8) return nullptr;
  size_t count = whole;
  if (at[whole] == '.') {
    // Without the point it is a whole number; its place is that of the first byte that stays above.
    const uint64_t below = (uint64_t{1} << (8 * whole)) - 1;
    eight = (eight & below) | (eight >> 8 & ~below);  // what comes in from above is no digit
    count = leading_digits(eight);
    at += 1;
  }
  at += count;
  if (count == 7 || *at == 'e' || *at == 'E' || *at == '.') return nullptr;
  // So few digits are exact as a double, and a product that is a little off is never near the middle of two floats.
  value = static_cast<float>(number_of(eight, count) * kTenths[count - whole]);
  return at;
}

// A decimal number at `at`, before `end`: sign, digits, point, exponent, or inf and nan in any case. Correctly rounded.
// Returns what follows it; null if there is none.
const char* scan_float(const char* at, const char* end, float& value);

}  // namespace pscloud

#include "data/scan.h"

#include <charconv>
#include <cmath>
#include <system_error>

namespace pscloud {
namespace {

constexpr float kTens[] = {1e0f, 1e1f, 1e2f, 1e3f, 1e4f, 1e5f, 1e6f, 1e7f, 1e8f, 1e9f, 1e10f};

const char* scan_any_float(const char* at, const char* end, float& value) {
  if (at < end && *at == '+' && at[1] != '-') ++at;
  const auto [rest, error] = std::from_chars(at, end, value);
  // What cannot be added up is no number here.
  if (error == std::errc()) return std::isfinite(value) ? rest : nullptr;
  if (error != std::errc::result_out_of_range) return nullptr;
  // Too large or too small for a float: as a double it is rounded to infinity or zero.
  double wide = 0;
  const auto [wide_rest, wide_error] = std::from_chars(at, end, wide);
  if (wide_error != std::errc()) return nullptr;
  value = static_cast<float>(wide);
  return std::isfinite(value) ? wide_rest : nullptr;
}

}  // namespace

const char* scan_float(const char* at, const char* end, float& value) {
  // Most are short: whole number and power of ten are then exact as floats, and one division rounds once.
  const char* first = at;
  const bool negative = *at == '-';
  at += negative;
  uint64_t eight = load_eight(at);
  size_t count = leading_digits(eight);
  if (count == 0 || count == 8) return scan_any_float(first, end, value);
  uint32_t digits = number_of(eight, count);
  at += count;
  size_t decimals = 0;
  if (*at == '.') {
    eight = load_eight(++at);
    decimals = leading_digits(eight);
    if (decimals == 8 || count + decimals > 8) return scan_any_float(first, end, value);
    if (decimals > 0) {
      digits = digits * static_cast<uint32_t>(kPowersOfTen[decimals]) + number_of(eight, decimals);
      at += decimals;
    }
  }
  if (at > end || digits > 1u << 24 || *at == 'e' || *at == 'E') return scan_any_float(first, end, value);
  const float result = static_cast<float>(digits) / kTens[decimals];
  value = negative ? -result : result;
  return at;
}

}  // namespace pscloud

#pragma once

#include <array>
#include <charconv>
#include <cstdint>
#include <string>

namespace pscloud {

// Numbers as text, many times as fast as a format string. A float is as short as can be read back to the same bits.
inline void append_number(std::string& text, uint64_t number) {
  std::array<char, 20> digits;
  const auto [end, error] = std::to_chars(digits.begin(), digits.end(), number);
  text.append(digits.begin(), end);
}

inline void append_number(std::string& text, float number) {
  std::array<char, 32> digits;
  const auto [end, error] = std::to_chars(digits.begin(), digits.end(), number);
  text.append(digits.begin(), end);
}

}  // namespace pscloud

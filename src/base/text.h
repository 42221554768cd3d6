#pragma once

#include <charconv>
#include <cstddef>
#include <string>
#include <string_view>
#include <system_error>

namespace pscloud {

// Bytes of the UTF-8 character that `text` begins with; 0 if it begins with none (or is empty). Overlong forms,
// surrogates and what lies above U+10FFFF are none, as RFC 3629 has it.
size_t utf8_character_bytes(std::string_view text);
// All of it is such characters.
bool is_utf8(std::string_view text);

// `text` in a form that is safe on a terminal and stays on its line: control characters and bytes that are not UTF-8
// become \n, \t, \r or \x1b. Everything else is unchanged, the backslash too: this is to be read, not undone.
std::string escape_controls(std::string_view text);

// All of `text` is a whole number from `low` to `high`; or else `number` stays what it was.
template <class T>
bool parse_number(std::string_view text, T low, T high, T& number) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < low || value > high) return false;
  number = value;
  return true;
}

}  // namespace pscloud

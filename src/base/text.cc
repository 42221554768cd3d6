#include "base/text.h"

#include <fmt/core.h>

#include <cstdint>

namespace pscloud {
namespace {

// C0, DEL, and C1, which in UTF-8 is C2 80 to C2 9F: some terminals take U+009B for the start of a command.
bool is_control(std::string_view character) {
  const auto first = static_cast<uint8_t>(character[0]);
  if (character.size() == 1) return first < 0x20 || first == 0x7f;
  return first == 0xc2 && static_cast<uint8_t>(character[1]) < 0xa0;
}

}  // namespace

size_t utf8_character_bytes(std::string_view text) {
  if (text.empty()) return 0;
  const auto first = static_cast<uint8_t>(text[0]);
  if (first < 0x80) return 1;
  const size_t size = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < size) return 0;
  for (size_t i = 1; i < size; ++i) {
    if ((static_cast<uint8_t>(text[i]) & 0xc0) != 0x80) return 0;
  }
  const auto second = static_cast<uint8_t>(text[1]);
  const bool overlong = (first == 0xe0 && second < 0xa0) || (first == 0xf0 && second < 0x90);
  const bool surrogate = first == 0xed && second > 0x9f;
  const bool too_large = first == 0xf4 && second > 0x8f;
  return overlong || surrogate || too_large ? 0 : size;
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const size_t known = utf8_character_bytes(text);
    if (known == 0) return false;
    text.remove_prefix(known);
  }
  return true;
}

std::string escape_controls(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const size_t known = utf8_character_bytes(text);
    const std::string_view character = text.substr(0, known == 0 ? 1 : known);
    text.remove_prefix(character.size());
    if (known != 0 && !is_control(character)) {
      result += character;
    } else if (character == "\n") {
      result += "\\n";
    } else if (character == "\t") {
      result += "\\t";
    } else if (character == "\r") {
      result += "\\r";
    } else {
      for (const char byte : character) result += fmt::format("\\x{:02x}", static_cast<uint8_t>(byte));
    }
  }
  return result;
}

}  // namespace pscloud

#include "base/base64.h"

#include <algorithm>
#include <cstdint>

namespace pscloud {
namespace {

constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

}  // namespace

std::string base64(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t at = 0; at < bytes.size(); at += 3) {
    const std::string_view group = bytes.substr(at, 3);
    uint32_t bits = 0;
    for (size_t i = 0; i < 3; ++i) bits = bits << 8 | (i < group.size() ? static_cast<uint8_t>(group[i]) : 0);
    for (size_t i = 0; i < 4; ++i) text += i <= group.size() ? kDigits[bits >> (18 - 6 * i) & 63] : '=';
  }
  return text;
}

std::string base64_url(std::string_view bytes) {
  std::string text = base64(bytes);
  std::ranges::replace(text, '+', '-');
  std::ranges::replace(text, '/', '_');
  return text;
}

std::optional<std::string> parse_base64(std::string_view text) {
  std::string bytes;
  uint32_t bits = 0;
  int count = 0;   // of digits in the group
  int padded = 0;  // of its last places
  for (const char c : text) {
    if (c == '\n' || c == '\r') continue;
    const size_t digit = kDigits.find(c);
    if (c == '=' && count >= 2) {
      ++padded;
    } else if (digit == std::string_view::npos || padded > 0) {
      return {};
    }
    bits = bits << 6 | (c == '=' ? 0 : static_cast<uint32_t>(digit));
    if (++count < 4) continue;
    for (int i = 0; i < 3 - padded; ++i) bytes += static_cast<char>(bits >> (16 - 8 * i));
    if (padded > 0) {
      count = -1;  // nothing may follow
      padded = 1;
      continue;
    }
    bits = 0;
    count = 0;
  }
  return count <= 0 ? std::optional(bytes) : std::nullopt;
}

}  // namespace pscloud

#pragma once

#include <cstdint>
#include <string_view>

#include "engine/message.h"

namespace pscloud {

// Fields that several messages have.

// Texts are for people: a long one is cut, not refused, and never inside a UTF-8 character.
inline void put_cut(ByteWriter& writer, std::string_view text) {
  if (text.size() > kTextBytesMax) {
    size_t size = kTextBytesMax;
    const auto continues = [&](size_t i) { return (static_cast<unsigned char>(text[i]) & 0xc0) == 0x80; };
    for (int back = 0; back < 3 && continues(size); ++back) --size;
    text = text.substr(0, size);
  }
  writer.put_text(text);
}

// The value of an enum that is written as one byte, from `first` to `last`. `known` turns false on any other.
template <class Enum>
Enum get_enum(ByteReader& reader, Enum first, Enum last, bool& known) {
  const auto value = reader.get<uint8_t>();
  if (value < static_cast<uint8_t>(first) || value > static_cast<uint8_t>(last)) known = false;
  return known ? static_cast<Enum>(value) : first;
}

inline bool get_bool(ByteReader& reader, bool& known) {
  const auto value = reader.get<uint8_t>();
  if (value > 1) known = false;
  return value == 1;
}

// What every decode() ends with: too short, too long, or a number that names nothing.
inline Result<> finish(const ByteReader& reader, bool known, std::string_view what) {
  TRY(reader.finish(what));
  if (!known) return corrupt("{} holds a number that has no meaning", what);
  return {};
}

}  // namespace pscloud

#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace pscloud {

// Of a file: [begin, end).
struct FileRange {
  uint64_t begin = 0;
  uint64_t end = 0;
};

// What a header `Range: bytes=...` (RFC 9110) asks of a file of `bytes`. `unsatisfiable` if none of it is there.
// Headers that cannot be understood, or ask for several ranges, are to be ignored, as the RFC allows: `whole`.
struct RangeAnswer {
  enum class Kind : uint8_t { kWhole, kPart, kUnsatisfiable } kind = Kind::kWhole;
  FileRange range = {};  // of kPart; not empty
};
RangeAnswer parse_range(std::string_view header, uint64_t bytes);

}  // namespace pscloud

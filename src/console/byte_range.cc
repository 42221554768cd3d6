#include "console/byte_range.h"

#include <algorithm>

#include "base/text.h"

namespace pscloud {

RangeAnswer parse_range(std::string_view header, uint64_t bytes) {
  constexpr std::string_view kUnit = "bytes=";
  const RangeAnswer whole;
  const RangeAnswer unsatisfiable{RangeAnswer::Kind::kUnsatisfiable, {}};
  if (!header.starts_with(kUnit)) return whole;
  header.remove_prefix(kUnit.size());
  const size_t dash = header.find('-');
  if (dash == std::string_view::npos) return whole;
  const std::string_view first = header.substr(0, dash);
  const std::string_view last = header.substr(dash + 1);
  uint64_t from = 0;
  uint64_t to = 0;
  if (first.empty()) {  // the last bytes
    if (!parse_number<uint64_t>(last, 0, UINT64_MAX, to)) return whole;
    if (to == 0 || bytes == 0) return unsatisfiable;
    return {RangeAnswer::Kind::kPart, {bytes - std::min(to, bytes), bytes}};
  }
  if (!parse_number<uint64_t>(first, 0, UINT64_MAX, from)) return whole;
  if (last.empty()) {
    to = bytes;
  } else {
    if (!parse_number<uint64_t>(last, from, UINT64_MAX, to)) return whole;
    to = to >= bytes ? bytes : to + 1;
  }
  if (from >= bytes) return unsatisfiable;
  return {RangeAnswer::Kind::kPart, {from, to}};
}

}  // namespace pscloud

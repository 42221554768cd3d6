#include "learn/bad_lines.h"

#include <fmt/format.h>

#include "base/log.h"

namespace pscloud {

Result<> BadLineComplaints::complain(FileStore& store, const std::string& uri, const BadLines& bad, bool are_records,
                                     bool strict) {
  count_ += bad.count;
  for (const BadLines::One& one : bad.first) {
    if (told_ == BadLines::kKept && !strict) break;
    const std::string place = are_records ? fmt::format("{}: the record at byte {}", uri, one.offset)
                                          : TRY(place_of_line(store, uri, one.offset));
    if (strict) return invalid("{}: {}", place, one.reason);
    log_warning("{}: {}; the {} is left out", place, one.reason, are_records ? "record" : "line");
    if (++told_ == BadLines::kKept) log_warning("more bad lines of this worker are only counted");
  }
  return {};
}

// Lines are counted from the last place that is known. What would have to come through the network for that in the
// middle of a large file is not worth it: work would stand still meanwhile.
Result<std::string> BadLineComplaints::place_of_line(FileStore& store, const std::string& uri, uint64_t offset) {
  constexpr uint64_t kFarBytes = 256 << 20;
  if (uri != counted_uri_ || offset < counted_.offset) counted_ = {};
  counted_uri_ = uri;
  const bool is_remote = uri.find("://") != std::string::npos && !uri.starts_with("file://");
  if (is_remote && offset - counted_.offset > kFarBytes) return fmt::format("{}: the line at byte {}", uri, offset);
  counted_ = {.offset = offset, .line = TRY(line_number(store, uri, offset, counted_))};
  return fmt::format("{}:{}", uri, counted_.line);
}

}  // namespace pscloud

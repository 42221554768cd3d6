#include "learn/bad_lines.h"

#include <fmt/format.h>

#include "base/log.h"
#include "data/text_reader.h"

namespace pscloud {

Result<> BadLineComplaints::complain(FileStore& store, const std::string& uri, const BadLines& bad, bool are_records,
                                     bool strict) {
  count_ += bad.count;
  for (const BadLines::One& one : bad.first) {
    if (told_ == BadLines::kKept && !strict) break;
    const std::string place = are_records ? fmt::format("{}: the record at byte {}", uri, one.offset)
                                          : fmt::format("{}:{}", uri, TRY(line_number(store, uri, one.offset)));
    if (strict) return invalid("{}: {}", place, one.reason);
    log_warning("{}: {}; the {} is left out", place, one.reason, are_records ? "record" : "line");
    if (++told_ == BadLines::kKept) log_warning("more bad lines of this worker are only counted");
  }
  return {};
}

}  // namespace pscloud

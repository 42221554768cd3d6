#include "learn/bad_lines.h"

#include <fmt/format.h>

#include "base/log.h"

namespace pscloud {

Result<> BadLineComplaints::complain(FileStore& store, const ExampleReader& reader, bool strict) {
  const auto& bad = reader.first_bad_lines();
  for (; made_ < bad.size(); ++made_) {
    const BadLine& line = bad[made_];
    const std::string place = line.is_record
                                  ? fmt::format("{}: the record at byte {}", line.uri, line.offset)
                                  : fmt::format("{}:{}", line.uri, TRY(line_number(store, line.uri, line.offset)));
    if (strict) return invalid("{}: {}", place, line.reason);
    log_warning("{}: {}; the {} is left out", place, line.reason, line.is_record ? "record" : "line");
    if (made_ + 1 == ExampleReader::kBadLinesKept) log_warning("more bad lines of this worker are only counted");
  }
  return {};
}

}  // namespace pscloud

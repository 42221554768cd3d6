#include "learn/bad_lines.h"

#include "base/log.h"

namespace pscloud {

Result<> BadLineComplaints::complain(FileStore& store, const ExampleReader& reader, bool strict) {
  const auto& bad = reader.first_bad_lines();
  for (; made_ < bad.size(); ++made_) {
    const BadLine& line = bad[made_];
    const uint64_t number = TRY(line_number(store, line.uri, line.offset));
    if (strict) return invalid("{}:{}: {}", line.uri, number, line.reason);
    log_warning("{}:{}: {}; the line is left out", line.uri, number, line.reason);
    if (made_ + 1 == ExampleReader::kBadLinesKept) log_warning("more bad lines of this worker are only counted");
  }
  return {};
}

}  // namespace pscloud

#include "cli/data/data_flags.h"

#include <CLI/CLI.hpp>

#include "cli/progress.h"
#include "data/example_reader.h"
#include "io/file_pattern.h"
#include "io/watched_store.h"
#include "learn/bad_lines.h"
#include "learn/data_settings.h"

namespace pscloud {

void add_data_flags(CLI::App& verb, DataFlags& flags, const char* about) {
  verb.add_option("files", flags.patterns, about)->type_name("FILES")->required();
  verb.add_option("--format", flags.format,
                  "LIBSVM, VW, SPARSE, SPARSE_BINARY, DENSE, ADFEA, TERAFEA, CRITEO or PROTO [LIBSVM]")
      ->type_name("NAME");
  verb.add_flag("--strict", flags.strict, "end at the first line that is no example");
}

Result<ReadCounts> for_each_example(const DataFlags& flags, const Cancelled& cancelled,
                                    const std::function<Result<bool>(const RowSlice&)>& take) {
  constexpr size_t kRows = 1000;
  const ExampleFormat format = TRY(example_format_named(flags.format));
  const auto store = make_file_store(cancelled);
  uint64_t bytes_read = 0;
  WatchedStore counting(*store, [&](size_t bytes) -> Result<> {
    bytes_read += bytes;
    if (cancelled()) return job_failed("interrupted");
    return {};
  });
  const std::vector<FileInfo> files = TRY(find_files(*store, flags.patterns));
  uint64_t bytes_all = 0;
  for (const FileInfo& file : files) bytes_all += file.size;
  ExampleReader reader(counting, make_parser(format, false));
  BadLineComplaints complaints;
  ProgressLine progress;
  uint64_t next_shown = 0;
  bool more = true;
  for (size_t i = 0; i < files.size() && more; ++i) {
    const FileInfo& file = files[i];
    TRY(reader.open({.uri = file.uri}));
    while (true) {
      const RowSlice rows = TRY(reader.next(kRows));
      if (rows.rows() == 0) break;
      more = TRY(take(rows));
      if (!more) break;
      if (bytes_read < next_shown) continue;
      next_shown = bytes_read + (64 << 20);
      progress.show(fmt::format("{} of {} MB", bytes_read >> 20, bytes_all >> 20));
    }
    TRY(complaints.complain(*store, file.uri, reader, flags.strict));
  }
  return ReadCounts{.files = files.size(), .bytes = bytes_read, .bad_lines = complaints.count()};
}

}  // namespace pscloud

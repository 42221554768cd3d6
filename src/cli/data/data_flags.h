#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli/local/line_channel.h"
#include "data/example_reader.h"
#include "io/file_store.h"

namespace CLI {
class App;
}

namespace pscloud {

// The files that a `pscloud data` verb reads.
struct DataFlags {
  std::vector<std::string> patterns;
  std::string format = "LIBSVM";
  bool strict = false;  // a bad line ends it; else it is counted and left out
};

void add_data_flags(CLI::App& verb, DataFlags& flags, const char* about);

// Goes through all examples, some at a time, until `take` returns false. Bad lines are told at the end.
struct ReadCounts {
  uint64_t files = 0;
  uint64_t bytes = 0;  // as the files are stored
  uint64_t bad_lines = 0;
};
Result<ReadCounts> for_each_example(const DataFlags& flags, const Cancelled& cancelled,
                                    const std::function<Result<bool>(const RowSlice&)>& take);

}  // namespace pscloud

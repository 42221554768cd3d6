#pragma once

#include <cstddef>
#include <string>

#include "pscloud/error.h"

namespace pscloud {

// All that is left to read of `fd`. kUnavailable says what the system does, also of files whose process has just gone,
// for which a std::ifstream throws; kCorrupt if there is more than `bytes_max`.
Result<std::string> read_to_end(int fd, size_t bytes_max);

}  // namespace pscloud

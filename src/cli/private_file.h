#pragma once

#include <string>
#include <string_view>

#include "pscloud/error.h"

namespace pscloud {

// A file that only its user may read, in the place of an older one; folders that are missing are made, 0700.
Result<> write_private_file(const std::string& path, std::string_view text);

// All of a small file.
Result<std::string> read_small_file(const std::string& path);

}  // namespace pscloud

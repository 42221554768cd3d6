#pragma once

#include <string_view>

#include "pscloud/error.h"

namespace pscloud {

// All of `bytes`, however many calls it takes. kUnavailable says what the system does.
Result<> write_all(int fd, std::string_view bytes);

}  // namespace pscloud

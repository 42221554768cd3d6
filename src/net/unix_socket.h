#pragma once

#include <string>

#include "base/fd.h"
#include "pscloud/error.h"

namespace pscloud {

// Sockets with a name in the file system. The path may have any length, though the kernel takes 107 bytes of one: the
// folder is opened, and named by its descriptor. Not inherited by child processes.

// Listens; accepting blocks. kInvalid if something has this name already.
Result<Fd> listen_at_path(const std::string& path);

// Connected, and does not block. kUnavailable if nobody listens there.
Result<Fd> connect_to_path(const std::string& path);

}  // namespace pscloud

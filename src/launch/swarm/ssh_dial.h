#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "pscloud/error.h"

namespace pscloud {

// Carries connections to the Docker engine of another machine, as `docker` itself does for ssh://[user@]host[:port]:
// for each the user's own ssh logs in and runs `docker system dial-stdio` there, until it is closed. No passwords are
// asked for, and host keys are checked as the user's ssh does. kInvalid if `address` is no such address.
Result<std::function<Result<>(Fd)>> ssh_dial(const std::string& address);

// The same by a command line of ssh that ends with the host (host/ssh_connection.h).
std::function<Result<>(Fd)> dial_by(std::vector<std::string> ssh);

}  // namespace pscloud

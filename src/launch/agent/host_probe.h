#pragma once

#include <string>
#include <vector>

#include "base/fd.h"
#include "net/address.h"
#include "pscloud/error.h"

namespace pscloud {

// A socket that others may try to reach, at `host` with a port of those that tasks get.
struct ProbedSocket {
  Fd fd;
  Address address;
};
Result<ProbedSocket> listen_for_probes(const std::string& host);

// Tries to connect to all of them at once; a line for each that cannot be reached within `timeout_ms`.
std::vector<std::string> probe(const std::vector<Address>& addresses, int timeout_ms);

}  // namespace pscloud

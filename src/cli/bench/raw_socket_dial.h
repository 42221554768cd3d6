#pragma once

#include <chrono>
#include <string>

#include "net/socket.h"
#include "pscloud/error.h"

namespace pscloud {

// How the two ends of a raw socket find each other between machines: one listens, the other dials and names the job, so
// that whoever else connects is not taken for it. The sockets that come back block.

// `address` is host:port.
Result<Fd> listen_raw(const std::string& address);
// Who has dialed and knows the job. kTimeout if nobody has within `timeout`.
Result<Fd> accept_raw(int listener, const std::string& job, std::chrono::milliseconds timeout);
// Tries until somebody listens there: it may be still starting, and its name still unknown. kUnavailable says why.
Result<Fd> dial_raw(const std::string& address, const std::string& job, std::chrono::milliseconds timeout);

}  // namespace pscloud

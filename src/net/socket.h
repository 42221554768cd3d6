#pragma once

#include <sys/socket.h>

#include <string>
#include <vector>

#include "base/fd.h"
#include "net/address.h"
#include "pscloud/error.h"

namespace pscloud {

// Where a TCP socket is or goes: an IP address of either kind, and a port.
struct Endpoint {
  sockaddr_storage storage{};
  socklen_t size = 0;

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  std::string host() const;  // numeric
  std::string text() const;  // "127.0.0.1:40123", "[::1]:40123"
};

// Asks the system's resolver, so a name may take seconds; a number takes none. For this end if `to_listen`: a name that
// begins with this machine's host name and is not known (yet) is then that of the machine, unless that is loopback.
Result<std::vector<Endpoint>> resolve(const Address& address, bool to_listen);

// All sockets below do not block and are not inherited by child processes.

// Bound and listening; port 0 takes a free one.
Result<Fd> listen_on(const Endpoint& endpoint);
Endpoint local_endpoint(int fd);
Endpoint remote_endpoint(int fd);

// A TCP socket that has begun to connect; writable when it has ended. kUnavailable if that failed at once.
Result<Fd> begin_connect(const Endpoint& endpoint);
// How it ended.
Result<> end_connect(int fd);

// No waiting for more to send; no more than ten seconds of silence while something is not acknowledged.
void set_lane_options(int fd);

// The socket with this name on this machine, visible to all processes of its network namespace.
Endpoint unix_endpoint(const std::string& name);
// The user at the other end of a unix socket is the one we run as.
bool same_user(int fd);

// Wakes who waits for this eventfd.
void ring(int eventfd);

}  // namespace pscloud

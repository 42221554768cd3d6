#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>

namespace pscloud {

// What went through one TCP socket since it was connected.
struct TcpBytes {
  uint64_t sent = 0;  // and acknowledged by the other end
  uint64_t received = 0;
};

// All connected TCP sockets of this network name space, by their inodes: `ss -ti`, asked of the kernel itself. None if
// it does not tell.
std::optional<std::unordered_map<uint64_t, TcpBytes>> all_tcp_sockets();

// The bytes of the TCP sockets of some processes, from one look to the next: what a connection carries after the last
// look before its end is not counted. Other ways, such as shared memory, UDP or RDMA, are no sockets of these. One
// thread.
class SocketBytes {
 public:
  void look(const std::unordered_map<uint64_t, TcpBytes>& sockets, std::span<const pid_t> processes);

  uint64_t sent() const { return all_.sent; }
  uint64_t received() const { return all_.received; }

 private:
  std::unordered_map<uint64_t, TcpBytes> last_;  // of those that were there at the last look
  TcpBytes all_;
};

}  // namespace pscloud

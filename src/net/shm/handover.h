#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "net/socket.h"
#include "pscloud/error.h"

namespace pscloud {

// What two processes hand each other over a unix socket: descriptors, and what they are.
struct ShmHandover {
  enum Kind : uint32_t {
    kHello = 1,    // segment 0, which has the slots, and the bell
    kSegment = 2,  // memory that is lent
  };
  uint32_t kind = 0;
  uint32_t segment = 0;
  uint64_t size = 0;
};

Result<> send_handover(int socket, const ShmHandover& what, std::span<const int> fds);

struct ReceivedHandover {
  ShmHandover what;  // as the peer says: not checked
  std::vector<Fd> fds;
};
// None if there is nothing now. kUnavailable when the peer has ended.
Result<std::optional<ReceivedHandover>> receive_handover(int socket);

}  // namespace pscloud

#include "net/shm/handover.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/check.h"

namespace pscloud {
namespace {

constexpr uint64_t kMagic = 0x314d48534c435350;  // "PSCLSHM1"
constexpr size_t kFdsMax = 2;

// A message as sendmsg() and recvmsg() want it.
struct Envelope {
  struct {
    uint64_t magic = kMagic;
    ShmHandover what;
  } text;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kFdsMax * sizeof(int))> control{};
  iovec data{.iov_base = &text, .iov_len = sizeof text};
  msghdr header{};

  Envelope() {
    header.msg_iov = &data;
    header.msg_iovlen = 1;
    header.msg_control = control.data();
    header.msg_controllen = control.size();
  }
  Envelope(const Envelope&) = delete;
  Envelope& operator=(const Envelope&) = delete;
};

}  // namespace

Result<> send_handover(int socket, const ShmHandover& what, std::span<const int> fds) {
  CHECK(!fds.empty() && fds.size() <= kFdsMax);
  Envelope envelope;
  envelope.text.what = what;
  envelope.header.msg_controllen = CMSG_SPACE(fds.size_bytes());
  cmsghdr* attached = CMSG_FIRSTHDR(&envelope.header);
  attached->cmsg_level = SOL_SOCKET;
  attached->cmsg_type = SCM_RIGHTS;
  attached->cmsg_len = CMSG_LEN(fds.size_bytes());
  std::memcpy(CMSG_DATA(attached), fds.data(), fds.size_bytes());
  ssize_t sent = 0;
  do {
    sent = sendmsg(socket, &envelope.header, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  // So few and so small that the socket always has room, unless the peer does not read at all.
  if (sent != sizeof envelope.text) return unavailable("cannot hand over shared memory: {}", errno_text(errno));
  return {};
}

Result<std::optional<ReceivedHandover>> receive_handover(int socket) {
  Envelope envelope;
  ssize_t got = 0;
  do {
    got = recvmsg(socket, &envelope.header, MSG_CMSG_CLOEXEC);
  } while (got < 0 && errno == EINTR);
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return std::optional<ReceivedHandover>();
  if (got == 0) return unavailable("closed by the peer");
  if (got < 0) return unavailable("{}", errno_text(errno));

  // First of all: what came is ours to close, whatever else is wrong.
  ReceivedHandover received;
  for (cmsghdr* part = CMSG_FIRSTHDR(&envelope.header); part != nullptr; part = CMSG_NXTHDR(&envelope.header, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    for (size_t i = 0; i < (part->cmsg_len - CMSG_LEN(0)) / sizeof(int); ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(part) + i * sizeof(int), sizeof fd);
      received.fds.emplace_back(fd);
    }
  }
  if (envelope.header.msg_flags & MSG_CTRUNC) {
    return unavailable("cannot take the peer's shared memory: this process has too many open files (ulimit -n)");
  }
  if (got != sizeof envelope.text || envelope.text.magic != kMagic) {
    return invalid("the peer ended the connection, or does not speak of shared memory");
  }
  received.what = envelope.text.what;
  return received;
}

}  // namespace pscloud

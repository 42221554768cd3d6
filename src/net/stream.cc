#include "net/stream.h"

#include <sys/socket.h>

#include <cerrno>

#include "net/socket.h"

namespace pscloud {
namespace {

class PlainStream final : public Stream {
 public:
  explicit PlainStream(int fd) : fd_(fd) {}

  Progress handshake() override { return {Progress::kDone}; }

  Progress read(std::span<const iovec> room) override {
    msghdr message = message_of(room);
    ssize_t got = 0;
    do {
      got = recvmsg(fd_, &message, 0);
    } while (got < 0 && errno == EINTR);
    if (got == 0) return {Progress::kEnd};
    if (got < 0) return stuck(Progress::kWantRead);
    size_t room_bytes = 0;
    for (const iovec& part : room) room_bytes += part.iov_len;
    const auto bytes = static_cast<size_t>(got);
    return {Progress::kDone, bytes, bytes < room_bytes};
  }

  Progress write(std::span<const iovec> data) override {
    const msghdr message = message_of(data);
    ssize_t sent = 0;
    do {
      sent = sendmsg(fd_, &message, MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
    if (sent < 0) return stuck(Progress::kWantWrite);
    return {Progress::kDone, static_cast<size_t>(sent)};
  }

  void end_writing() override { shutdown(fd_, SHUT_WR); }
  const Error& error() const override { return error_; }
  void identify(Peer&) const override {}

 private:
  static msghdr message_of(std::span<const iovec> parts) {
    msghdr message{};
    message.msg_iov = const_cast<iovec*>(parts.data());
    message.msg_iovlen = parts.size();
    return message;
  }

  Progress stuck(Progress::Status want) {
    if (errno == EAGAIN || errno == EWOULDBLOCK) return {want};
    error_ = unavailable("{}", errno_text(errno));
    return {Progress::kFailed};
  }

  const int fd_;
  Error error_{};
};

}  // namespace

std::unique_ptr<Stream> make_plain_stream(int fd) { return std::make_unique<PlainStream>(fd); }

}  // namespace pscloud

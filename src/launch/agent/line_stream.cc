#include "launch/agent/line_stream.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>

#include "net/sigpipe.h"

namespace pscloud {
namespace {

// Read at once; more waits in the kernel, and so does who writes it.
constexpr size_t kReadBytes = 64 << 10;

void set_nonblocking(int fd) { ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK); }

bool would_wait() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

}  // namespace

Result<std::pair<Fd, Fd>> make_socket_pair() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return unavailable("cannot make a socket: {}", errno_text(errno));
  }
  return std::pair{Fd(ends[0]), Fd(ends[1])};
}

LineStream::LineStream(Fd in, Fd out, size_t line_max)
    : in_(std::move(in)), out_(std::move(out)), line_max_(line_max), lines_(line_max) {
  set_nonblocking(in_.get());
  set_nonblocking(this->out());
}

void LineStream::fail(std::string why) {
  if (!broken_) broken_ = std::move(why);
  out_bytes_.clear();
  sent_ = 0;
}

void LineStream::send_bytes(std::string_view bytes) {
  if (broken_ || output_closed_) return;
  out_bytes_ += bytes;
  send_some();
}

void LineStream::send_line(std::string_view line) {
  if (broken_ || output_closed_) return;
  out_bytes_ += line;
  out_bytes_ += '\n';
  send_some();
}

void LineStream::send_some() {
  const SigpipeBlock quiet;
  while (sent_ < out_bytes_.size()) {
    const ssize_t count = ::write(out(), out_bytes_.data() + sent_, out_bytes_.size() - sent_);
    if (count < 0 && would_wait()) break;
    if (count < 0) return fail(fmt::format("the other end is gone: {}", errno_text(errno)));
    sent_ += static_cast<size_t>(count);
  }
  // Not for each piece: moving what is left costs its size.
  if (sent_ * 2 >= out_bytes_.size()) {
    out_bytes_.erase(0, sent_);
    sent_ = 0;
  }
}

void LineStream::read_some() {
  std::array<char, kReadBytes> bytes;
  const ssize_t count = ::read(in_.get(), bytes.data(), bytes.size());
  if (count > 0) {
    lines_.add({bytes.data(), static_cast<size_t>(count)});
  } else if (count == 0) {
    fail("the other end has closed the connection");
  } else if (!would_wait()) {
    fail(fmt::format("the other end is gone: {}", errno_text(errno)));
  }
}

std::optional<std::string> LineStream::next_line() {
  if (!broken_) send_some();
  auto line = lines_.next();
  if (!line && !broken_) {
    read_some();
    line = lines_.next();
  }
  if (!line) return std::nullopt;
  if (line->continues) {
    lines_.rest();
    fail(fmt::format("a line is longer than {} bytes", line_max_));
    return std::nullopt;
  }
  return std::move(line->text);
}

void LineStream::add_to(std::vector<pollfd>& polled) const {
  if (broken_) return;
  polled.push_back({in_.get(), POLLIN, 0});
  if (unsent() > 0) polled.push_back({out(), POLLOUT, 0});
}

bool LineStream::flush(int timeout_ms) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms);
  while (!broken_) {
    send_some();
    if (unsent() == 0) return true;
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) return false;
    pollfd polled{out(), POLLOUT, 0};
    ::poll(&polled, 1, static_cast<int>(left.count()) + 1);
  }
  return false;
}

void LineStream::close_output() {
  if (output_closed_) return;
  output_closed_ = true;
  if (out_) {
    out_ = Fd();
  } else {
    ::shutdown(in_.get(), SHUT_WR);
  }
  out_bytes_.clear();
  sent_ = 0;
}

}  // namespace pscloud

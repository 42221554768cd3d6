#include "cli/local/line_channel.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace pscloud {

using std::chrono::milliseconds;

Result<std::pair<Fd, Fd>> LineChannel::make_pair() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return unavailable("cannot make a pair of sockets: {}", errno_text(errno));
  }
  return std::pair(Fd(ends[0]), Fd(ends[1]));
}

Result<> LineChannel::write_line(std::string_view line) {
  std::string text(line);
  text += '\n';
  for (size_t sent = 0; sent < text.size();) {
    const ssize_t n = ::send(socket_.get(), text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return unavailable("cannot write to the other process: {}", errno_text(errno));
    sent += static_cast<size_t>(n);
  }
  return {};
}

Result<std::string> LineChannel::read_line(milliseconds timeout, const Cancelled& cancelled) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  while (true) {
    if (const size_t end = read_.find('\n'); end != std::string::npos) {
      std::string line = read_.substr(0, end);
      read_.erase(0, end + 1);
      return line;
    }
    if (cancelled && cancelled()) return Error{Code::kFailed, "interrupted"};
    const auto left = std::chrono::ceil<milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) return timed_out("the other process has said nothing for {} ms", timeout.count());
    pollfd ready{.fd = socket_.get(), .events = POLLIN, .revents = 0};
    if (::poll(&ready, 1, static_cast<int>(std::min<int64_t>(left.count(), 100))) <= 0) continue;
    std::array<char, 4096> some;
    const ssize_t n = ::read(socket_.get(), some.data(), some.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return unavailable("the other process has ended");
    read_.append(some.data(), static_cast<size_t>(n));
  }
}

}  // namespace pscloud

#include "cli/bench/raw_socket_dial.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <thread>

namespace pscloud {
namespace {

using std::chrono::milliseconds;
using DialClock = std::chrono::steady_clock;

constexpr milliseconds kDialAgain{50};

using Hello = std::array<char, 64>;

Hello hello_of(const std::string& job) {
  Hello hello{};
  std::copy_n(job.begin(), std::min(job.size(), hello.size()), hello.begin());
  return hello;
}

// False when the time is over.
bool wait_until_ready(int fd, short events, DialClock::time_point deadline) {
  const auto left = std::chrono::ceil<milliseconds>(deadline - DialClock::now()).count();
  pollfd ready{.fd = fd, .events = events, .revents = 0};
  return ::poll(&ready, 1, static_cast<int>(std::max<int64_t>(left, 0))) > 0;
}

bool hears_hello(int fd, const Hello& expected, DialClock::time_point deadline) {
  Hello hello{};
  size_t got = 0;
  while (got < hello.size() && wait_until_ready(fd, POLLIN, deadline)) {
    const ssize_t n = ::recv(fd, hello.data() + got, hello.size() - got, MSG_DONTWAIT);
    if (n <= 0) return false;
    got += static_cast<size_t>(n);
  }
  return hello == expected;
}

Result<Fd> dial_once(const Address& address, const Hello& hello, DialClock::time_point deadline) {
  const auto endpoints = TRY(resolve(address, false));
  Fd socket = TRY(begin_connect(endpoints.front()));
  if (!wait_until_ready(socket.get(), POLLOUT, deadline)) return timed_out("no answer");
  TRY(end_connect(socket.get()));
  ::fcntl(socket.get(), F_SETFL, ::fcntl(socket.get(), F_GETFL) & ~O_NONBLOCK);
  if (::send(socket.get(), hello.data(), hello.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(hello.size())) {
    return unavailable("the connection broke");
  }
  return socket;
}

}  // namespace

Result<Fd> listen_raw(const std::string& address) {
  const auto endpoints = TRY(resolve(TRY(parse_address(address)), true));
  return listen_on(endpoints.front());
}

Result<Fd> accept_raw(int listener, const std::string& job, milliseconds timeout) {
  const auto deadline = DialClock::now() + timeout;
  while (wait_until_ready(listener, POLLIN, deadline)) {
    Fd socket(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
    if (socket && hears_hello(socket.get(), hello_of(job), deadline)) return socket;
  }
  return timed_out("nobody has called within {} ms", timeout.count());
}

Result<Fd> dial_raw(const std::string& address, const std::string& job, milliseconds timeout) {
  const Address there = TRY(parse_address(address));
  const Hello hello = hello_of(job);
  const auto deadline = DialClock::now() + timeout;
  while (true) {
    auto socket = dial_once(there, hello, deadline);
    if (socket) return socket;
    if (DialClock::now() + kDialAgain >= deadline) return unavailable("{}: {}", address, socket.error().message);
    std::this_thread::sleep_for(kDialAgain);
  }
}

}  // namespace pscloud

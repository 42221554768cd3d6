#include "cli/bench/raw_socket.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <memory>
#include <thread>

#include "cli/bench/machine_limits.h"
#include "cli/exit_code.h"
#include "cli/local/line_channel.h"

namespace pscloud {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr size_t kPieceBytes = size_t{1} << 20;
constexpr timeval kSilenceMax{.tv_sec = 30, .tv_usec = 0};

// What one end asks of the other before it begins.
struct Order {
  enum class Kind : uint32_t { kExchange, kEcho };
  Kind kind = Kind::kEcho;
  Duplex duplex = Duplex::kPoll;
  uint64_t bytes = 0;
  uint64_t count = 1;
};

Error broken() { return unavailable("the raw socket broke: {}", errno_text(errno)); }

Result<> send_all(int fd, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::send(fd, bytes.data(), std::min(bytes.size(), kPieceBytes), MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return broken();
    bytes = bytes.subspan(static_cast<size_t>(n));
  }
  return {};
}

Result<> receive_all(int fd, std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::recv(fd, bytes.data(), std::min(bytes.size(), kPieceBytes), 0);
    if (n < 0 && errno == EINTR) continue;
    if (n == 0) return unavailable("the other end of the raw socket has ended");
    if (n < 0) return broken();
    bytes = bytes.subspan(static_cast<size_t>(n));
  }
  return {};
}

// Moves what goes without waiting; false if nothing did.
Result<bool> advance(ssize_t moved, size_t& left) {
  if (moved < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  if (moved <= 0) return broken();
  left -= static_cast<size_t>(moved);
  return true;
}

Result<> exchange_by_poll(int fd, std::span<const std::byte> out, std::span<std::byte> in) {
  size_t out_left = out.size(), in_left = in.size();
  while (out_left > 0 || in_left > 0) {
    bool moved = false;
    if (out_left > 0) {
      const auto piece = out.last(out_left).first(std::min(out_left, kPieceBytes));
      moved |= TRY(advance(::send(fd, piece.data(), piece.size(), MSG_NOSIGNAL | MSG_DONTWAIT), out_left));
    }
    if (in_left > 0) {
      const auto piece = in.last(in_left).first(std::min(in_left, kPieceBytes));
      moved |= TRY(advance(::recv(fd, piece.data(), piece.size(), MSG_DONTWAIT), in_left));
    }
    if (moved) continue;
    const int events = (out_left > 0 ? POLLOUT : 0) | (in_left > 0 ? POLLIN : 0);
    pollfd ready{.fd = fd, .events = static_cast<short>(events), .revents = 0};
    if (::poll(&ready, 1, static_cast<int>(kSilenceMax.tv_sec) * 1000) == 0) {
      return timed_out("the other end of the raw socket is silent");
    }
  }
  return {};
}

Result<> exchange_by_threads(int fd, std::span<const std::byte> out, std::span<std::byte> in) {
  Result<> sent, received;
  {
    const std::jthread sender([&] { sent = send_all(fd, out); });
    received = receive_all(fd, in);
  }
  TRY(std::move(sent));
  return received;
}

Result<> exchange(int fd, Duplex duplex, std::span<const std::byte> out, std::span<std::byte> in) {
  return duplex == Duplex::kPoll ? exchange_by_poll(fd, out, in) : exchange_by_threads(fd, out, in);
}

template <class T>
std::span<std::byte> bytes_in(T& value) {
  return std::as_writable_bytes(std::span(&value, 1));
}

void set_options(int fd, RawSocketKind kind) {
  const int one = 1;
  if (kind == RawSocketKind::kTcp) ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &kSilenceMax, sizeof kSilenceMax);
  ::setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &kSilenceMax, sizeof kSilenceMax);
}

Result<std::pair<Fd, Fd>> tcp_pair() {
  const auto failed = [] { return unavailable("cannot connect over loopback: {}", errno_text(errno)); };
  const auto make = [] { return Fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)); };
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* raw = reinterpret_cast<sockaddr*>(&address);
  socklen_t size = sizeof address;
  const Fd listener = make();
  Fd one = make();
  if (!listener || !one || ::bind(listener.get(), raw, size) != 0 || ::listen(listener.get(), 1) != 0 ||
      ::getsockname(listener.get(), raw, &size) != 0 || ::connect(one.get(), raw, size) != 0) {
    return failed();
  }
  Fd two(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!two) return failed();
  return std::pair(std::move(one), std::move(two));
}

// The peer's part of one order.
Result<> obey(const Order& order, uint64_t bytes_max, std::unique_ptr<LimitBuffer>& out,
              std::unique_ptr<LimitBuffer>& in) {
  if (order.bytes > bytes_max) return corrupt("asked to move {} bytes, {} at most", order.bytes, bytes_max);
  if (out == nullptr || out->bytes().size() < order.bytes) {
    out = std::make_unique<LimitBuffer>(order.bytes);
    in = std::make_unique<LimitBuffer>(order.bytes);
  }
  const auto to_send = out->bytes().first(order.bytes), to_receive = in->bytes().first(order.bytes);
  std::byte ready{};
  TRY(send_all(STDIN_FILENO, bytes_in(ready)));
  if (order.kind == Order::Kind::kExchange) return exchange(STDIN_FILENO, order.duplex, to_send, to_receive);
  for (uint64_t i = 0; i < order.count; ++i) {
    TRY(receive_all(STDIN_FILENO, to_receive));
    TRY(send_all(STDIN_FILENO, to_receive));
  }
  return {};
}

// Gives the order, and waits until the other end has what it needs for it.
Result<> give_order(int fd, Order order) {
  TRY(send_all(fd, bytes_in(order)));
  std::byte ready{};
  return receive_all(fd, bytes_in(ready));
}

}  // namespace

RawSocketPeer::RawSocketPeer(Fd socket) : socket_(std::move(socket)) {
  set_options(socket_.get(), RawSocketKind::kTcp);
}

Result<RawSocketPeer> RawSocketPeer::start(RawSocketKind kind) {
  auto [ours, theirs] = TRY(kind == RawSocketKind::kTcp ? tcp_pair() : LineChannel::make_pair());
  set_options(ours.get(), kind);
  set_options(theirs.get(), kind);
  auto child = TRY(ChildProcess::start({"bench", "raw-socket-peer"}, {}, std::move(theirs)));
  return RawSocketPeer(std::move(ours), std::move(child));
}

Result<double> RawSocketPeer::exchange_ms(std::span<const std::byte> out, std::span<std::byte> in, Duplex duplex) {
  TRY(give_order(socket_.get(), {.kind = Order::Kind::kExchange, .duplex = duplex, .bytes = out.size()}));
  const auto start = SteadyClock::now();
  TRY(exchange(socket_.get(), duplex, out, in.first(out.size())));
  return std::chrono::duration<double, std::milli>(SteadyClock::now() - start).count();
}

Result<> RawSocketPeer::round_trips(size_t bytes, int count, std::vector<double>& us) {
  std::vector<std::byte> buffer(bytes);
  TRY(give_order(socket_.get(), {.bytes = bytes, .count = static_cast<uint64_t>(count)}));
  for (int i = 0; i < count; ++i) {
    const auto start = SteadyClock::now();
    TRY(send_all(socket_.get(), buffer));
    TRY(receive_all(socket_.get(), buffer));
    us.push_back(std::chrono::duration<double, std::micro>(SteadyClock::now() - start).count());
  }
  return {};
}

int run_raw_socket_peer(uint64_t bytes_max) {
  set_options(STDIN_FILENO, RawSocketKind::kTcp);  // means nothing to a unix socket
  std::unique_ptr<LimitBuffer> out, in;
  Order order;
  // Orders may be far apart. The end of the socket is the end of the work, and so is that of the parent.
  pollfd next{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
  while (::poll(&next, 1, -1) > 0 && receive_all(STDIN_FILENO, bytes_in(order))) {
    if (const auto done = obey(order, bytes_max, out, in); !done) return fail(done.error());
  }
  return kExitDone;
}

struct WarmCores::Threads {
  std::atomic<bool> done = false;
  std::vector<std::jthread> threads;
};

WarmCores::WarmCores() : threads_(std::make_unique<Threads>()) {
  for (unsigned i = 0; i < std::max(1u, std::thread::hardware_concurrency()); ++i) {
    threads_->threads.emplace_back([&done = threads_->done] {
      // Only when nobody else wants the core.
      const sched_param lowest{};
      ::sched_setscheduler(0, SCHED_IDLE, &lowest);
      while (!done.load(std::memory_order_relaxed)) continue;
    });
  }
}

WarmCores::~WarmCores() { threads_->done = true; }

}  // namespace pscloud

#include "launch/rendezvous/secure_pipe.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>  // NOLINT: <csignal> does not promise sigset_t
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <string>

#include "base/log.h"
#include "launch/agent/line_stream.h"
#include "net/sigpipe.h"
#include "net/socket.h"

namespace pscloud {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

namespace {

constexpr size_t kMovedBytes = 64 << 10;
constexpr seconds kHandshakeTime{20};
constexpr seconds kLastBytesTime{10};
constexpr milliseconds kLookForEnd{200};

bool nothing_now() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

}  // namespace

// The thread's work. All but `ending` is touched by it alone.
class SecurePipe::Mover {
 public:
  Mover(Fd socket, std::unique_ptr<Stream> stream, Fd far)
      : socket_(std::move(socket)), stream_(std::move(stream)), far_(std::move(far)) {}

  void run() {
    SigpipeBlock::for_thread();
    if (shake_hands()) {
      while (move()) continue;
      stream_->end_writing();
    }
    ::shutdown(far_.get(), SHUT_RDWR);
  }

  std::atomic<bool> ending = false;  // the near end's owner waits

 private:
  bool shake_hands() {
    const auto deadline = steady_clock::now() + kHandshakeTime;
    while (true) {
      const Progress progress = stream_->handshake();
      if (progress.status == Progress::kDone) return true;
      if (progress.status == Progress::kFailed || progress.status == Progress::kEnd) {
        log_warning("{}: {}", remote_endpoint(socket_.get()).text(), stream_->error().message);
        return false;
      }
      if (ending || steady_clock::now() >= deadline) return false;
      pollfd polled{socket_.get(), static_cast<short>(progress.status == Progress::kWantRead ? POLLIN : POLLOUT), 0};
      ::poll(&polled, 1, static_cast<int>(kLookForEnd.count()));
    }
  }

  // Moves what can be moved, then waits for more. False: it is over.
  bool move() {
    want_ = 0;
    bool moved = false;
    for (const bool one : {read_near(), write_peer(), read_peer(), write_near()}) moved = moved || one;
    if (broken_ || (near_ended_ && to_peer_.empty()) || (peer_ended_ && to_near_.empty())) return false;
    if (ending && !ends_by_) ends_by_ = steady_clock::now() + kLastBytesTime;
    if (ends_by_ && steady_clock::now() >= *ends_by_) return false;
    if (moved) return true;
    std::array<pollfd, 2> polled = {{{socket_.get(), want_, 0}, {far_.get(), 0, 0}}};
    if (to_peer_.empty() && !near_ended_) polled[1].events |= POLLIN;
    if (!to_near_.empty()) polled[1].events |= POLLOUT;
    ::poll(polled.data(), polled.size(), static_cast<int>(kLookForEnd.count()));
    return true;
  }

  bool read_near() {
    if (!to_peer_.empty() || near_ended_) return false;
    std::array<char, kMovedBytes> bytes;
    const ssize_t count = ::read(far_.get(), bytes.data(), bytes.size());
    if (count > 0) to_peer_.assign(bytes.data(), static_cast<size_t>(count));
    if (count == 0 || (count < 0 && !nothing_now())) near_ended_ = true;
    return count > 0;
  }

  bool write_near() {
    if (to_near_.empty()) return false;
    const ssize_t count = ::write(far_.get(), to_near_.data(), to_near_.size());
    if (count > 0) to_near_.erase(0, static_cast<size_t>(count));
    if (count < 0 && !nothing_now()) {
      near_ended_ = true;  // nobody reads it any more
      to_near_.clear();
    }
    return count > 0;
  }

  bool write_peer() {
    if (to_peer_.empty()) return false;
    const iovec data{to_peer_.data(), to_peer_.size()};
    const Progress progress = stream_->write({&data, 1});
    if (progress.status == Progress::kDone) to_peer_.erase(0, progress.bytes);
    return take(progress);
  }

  bool read_peer() {
    if (!to_near_.empty() || peer_ended_) return false;
    std::array<char, kMovedBytes> bytes;
    const iovec room{bytes.data(), bytes.size()};
    const Progress progress = stream_->read({&room, 1});
    if (progress.status == Progress::kDone) to_near_.assign(bytes.data(), progress.bytes);
    return take(progress);
  }

  bool take(const Progress& progress) {
    switch (progress.status) {
      case Progress::kDone: return true;
      case Progress::kWantRead: want_ |= POLLIN; break;
      case Progress::kWantWrite: want_ |= POLLOUT; break;
      case Progress::kEnd: peer_ended_ = true; break;
      case Progress::kFailed: broken_ = true; break;
    }
    return false;
  }

  Fd socket_;
  std::unique_ptr<Stream> stream_;
  Fd far_;
  std::string to_peer_;
  std::string to_near_;
  short want_ = 0;  // of the socket
  bool near_ended_ = false;
  bool peer_ended_ = false;
  bool broken_ = false;
  std::optional<steady_clock::time_point> ends_by_;
};

SecurePipe::SecurePipe(Fd near, std::unique_ptr<Mover> mover) : near_(std::move(near)), mover_(std::move(mover)) {
  // No signal is the thread's: one that it took, or that is ignored because it could, would not reach who waits for it.
  sigset_t all, before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::jthread([this] { mover_->run(); });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

SecurePipe::~SecurePipe() {
  near_ = Fd();
  mover_->ending = true;
  thread_.join();
}

Result<std::unique_ptr<SecurePipe>> SecurePipe::over(Fd socket, std::unique_ptr<Stream> stream) {
  auto [near, far] = TRY(make_socket_pair());
  ::fcntl(far.get(), F_SETFL, O_NONBLOCK);
  auto mover = std::make_unique<Mover>(std::move(socket), std::move(stream), std::move(far));
  return std::unique_ptr<SecurePipe>(new SecurePipe(std::move(near), std::move(mover)));
}

Result<Fd> connect_until(const Address& address, steady_clock::time_point deadline) {
  Error last = unavailable("{} cannot be reached", address.text());
  milliseconds pause{100};
  while (true) {
    for (const Endpoint& endpoint : TRY(resolve(address, false))) {
      auto socket = begin_connect(endpoint);
      if (!socket) {
        last = socket.error();
        continue;
      }
      pollfd polled{socket->get(), POLLOUT, 0};
      const auto left = std::chrono::ceil<milliseconds>(deadline - steady_clock::now()).count();
      ::poll(&polled, 1, static_cast<int>(std::clamp<int64_t>(left, 0, 10000)));
      const auto connected = polled.revents == 0 ? Result<>(last) : end_connect(socket->get());
      if (connected) {
        set_lane_options(socket->get());
        return *std::move(socket);
      }
      last = connected.error();
    }
    if (steady_clock::now() + pause >= deadline) return last;
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, milliseconds(2000));
  }
}

}  // namespace pscloud

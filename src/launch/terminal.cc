#include "launch/terminal.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>  // NOLINT: <csignal> does not promise sigset_t
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace pscloud {
namespace {

constexpr std::chrono::seconds kLookEvery{1};
// At once to the system: after each the room is known anew.
constexpr size_t kWriteBytes = 64 << 10;

}  // namespace

Terminal::Terminal(int out, int err, std::chrono::milliseconds patience)
    : patience_max_(patience), fds_{out, err}, patience_(patience) {
  // Not one signal is for the thread; SIGPIPE of its writes stays with it, and ends with it.
  sigset_t all, before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { run(); });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Terminal::~Terminal() {
  {
    MutexLock lock(mutex_);
    tell_left_out();
    ending_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

void Terminal::next_round() {
  MutexLock lock(mutex_);
  patience_ = patience_max_;
}

void Terminal::write(Stream stream, std::string_view text) {
  MutexLock lock(mutex_);
  if (!has_room(text.size()) && !stands_still_) {
    using std::chrono::steady_clock;
    const auto began = steady_clock::now();
    const auto patience = std::chrono::ceil<std::chrono::microseconds>(patience_);
    stands_still_ = !changed_.wait_for(mutex_, patience, [&]() REQUIRES(mutex_) { return has_room(text.size()); });
    patience_ = std::max(steady_clock::duration(), patience_ - (steady_clock::now() - began));
  }
  if (!has_room(text.size())) {
    left_out_ += static_cast<uint64_t>(std::ranges::count(text, '\n'));
    return;
  }
  tell_left_out();
  add(stream, text);
}

void Terminal::add(Stream stream, std::string_view text) {
  waiting_bytes_ += text.size();
  if (waiting_.empty() || waiting_.back().stream != stream) waiting_.push_back({stream, {}});
  waiting_.back().text += text;
  changed_.notify_all();
}

void Terminal::tell_left_out() {
  if (left_out_ == 0) return;
  const uint64_t lines = std::exchange(left_out_, 0);
  add(Stream::kErr, fmt::format("pscloud: {} line{} not shown, for the terminal stood still; the log files have all\n",
                                lines, lines == 1 ? " was" : "s were"));
}

bool Terminal::drain(std::chrono::milliseconds patience) {
  MutexLock lock(mutex_);
  tell_left_out();
  return changed_.wait_for(mutex_, patience, [this]() REQUIRES(mutex_) { return waiting_bytes_ == 0; });
}

void Terminal::run() {
  while (true) {
    std::deque<Piece> pieces;
    {
      MutexLock lock(mutex_);
      changed_.wait_for(mutex_, kLookEvery, [this]() REQUIRES(mutex_) { return !waiting_.empty() || ending_; });
      if (waiting_.empty() && ending_) return;
      pieces.swap(waiting_);
    }
    for (const Piece& piece : pieces) write_out(piece);
  }
}

void Terminal::write_out(const Piece& piece) {
  int& fd = fds_[static_cast<size_t>(piece.stream)];
  std::string_view left = piece.text;
  while (!left.empty()) {
    const ssize_t wrote =
        fd < 0 ? static_cast<ssize_t>(left.size()) : ::write(fd, left.data(), std::min(left.size(), kWriteBytes));
    if (wrote < 0) {
      if (errno == EAGAIN) {
        // Somebody with the same terminal, as ssh, has made it so: this thread may wait.
        pollfd room{.fd = fd, .events = POLLOUT, .revents = 0};
        (void)::poll(&room, 1, -1);
      } else if (errno != EINTR) {
        fd = -1;
      }
      continue;
    }
    left.remove_prefix(static_cast<size_t>(wrote));
    MutexLock lock(mutex_);
    waiting_bytes_ -= static_cast<size_t>(wrote);
    stands_still_ = false;
    changed_.notify_all();
  }
}

}  // namespace pscloud

#pragma once

#include <pthread.h>

#include <atomic>
#include <csignal>
#include <functional>
#include <thread>

namespace pscloud {

// Turns SIGINT and SIGTERM into a call on an ordinary thread. Make it before any other thread, so that they all
// inherit that these signals are not theirs.
class Signals {
 public:
  Signals();
  ~Signals();  // as it was before
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  // Calls `on_signal` at the first signal, also if that has come already. A second signal ends the process at once,
  // and a line says where to look for what may be left: the user means it. Called at most once.
  void watch(std::function<void(int signal)> on_signal);

  // No call to `on_signal` is under way or comes after this.
  void end_watch();

  // The first signal that came, 0 if none.
  int received() const { return received_; }

 private:
  sigset_t set_;
  sigset_t before_;
  std::atomic<int> received_ = 0;
  std::atomic<bool> done_ = false;
  std::jthread thread_;
};

}  // namespace pscloud

#pragma once

#include <chrono>
#include <deque>
#include <string>
#include <string_view>
#include <thread>

#include "base/mutex.h"

namespace pscloud {

// What people see of a run, on its way to stdout and stderr in a thread of its own. A terminal that stands still
// (Ctrl-S, a pager) holds the run up for kPatience at most: what it does not take is then left out and counted, for the
// log files have all. A reader that is only slow gets everything, unless it is slower than a whole run can wait for.
// One that is gone takes nothing more, and nobody need know. One thread writes to it.
class Terminal {
 public:
  static constexpr size_t kBytesMax = size_t{4} << 20;
  static constexpr std::chrono::milliseconds kPatience{500};
  enum class Stream : uint8_t { kOut, kErr };

  // Descriptors; they may be one.
  Terminal(int out, int err, std::chrono::milliseconds patience = kPatience);
  // Waits until all is written, however long that takes: the run is over, and who has stopped the terminal knows it.
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  // The writer has seen to all else that it has to do, and may wait for kPatience again.
  void next_round() EXCLUDES(mutex_);
  void write(Stream stream, std::string_view text) EXCLUDES(mutex_);
  // False if not all is written within this time.
  bool drain(std::chrono::milliseconds patience) EXCLUDES(mutex_);

 private:
  struct Piece {
    Stream stream;
    std::string text;
  };

  bool has_room(size_t bytes) const REQUIRES(mutex_) {
    return waiting_bytes_ == 0 || waiting_bytes_ + bytes <= kBytesMax;
  }
  void add(Stream stream, std::string_view text) REQUIRES(mutex_);
  void tell_left_out() REQUIRES(mutex_);
  void run() EXCLUDES(mutex_);
  void write_out(const Piece& piece) EXCLUDES(mutex_);

  const std::chrono::milliseconds patience_max_;
  int fds_[2];  // -1 once it is gone; touched by the thread alone

  Mutex mutex_;
  CondVar changed_;
  std::deque<Piece> waiting_ GUARDED_BY(mutex_);
  size_t waiting_bytes_ GUARDED_BY(mutex_) = 0;  // with those that are being written
  uint64_t left_out_ GUARDED_BY(mutex_) = 0;
  bool stands_still_ GUARDED_BY(mutex_) = false;                     // it took nothing for as long as we waited
  std::chrono::steady_clock::duration patience_ GUARDED_BY(mutex_);  // that is left of this round
  bool ending_ GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace pscloud

#pragma once

#include <atomic>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "engine/node_loop.h"

namespace pscloud {

// How many bytes are under way, for back-pressure on the caller.
class Budget {
 public:
  explicit Budget(uint64_t bytes_max) : bytes_max_(bytes_max) {}

  // Does the loop's work until there is room. False after `timeout`: every request ends, so somebody gives back.
  bool take(uint64_t bytes, NodeLoop& loop, Duration timeout) {
    const Time deadline = loop.clock().now() + timeout;
    while (true) {
      std::atomic<bool> given_back{false};
      {
        MutexLock lock(mutex_);
        if (bytes_ == 0 || bytes_ + bytes <= bytes_max_) {
          bytes_ += bytes;
          return true;
        }
        if (loop.clock().now() >= deadline) return false;
        waiting_.push_back(&given_back);
      }
      const bool changed = loop.drive_until(given_back);
      MutexLock lock(mutex_);
      std::erase(waiting_, &given_back);
      if (!changed) return false;
    }
  }
  void give_back(uint64_t bytes) {
    MutexLock lock(mutex_);
    bytes_ -= bytes;
    for (std::atomic<bool>* one : std::exchange(waiting_, {})) *one = true;
  }

 private:
  const uint64_t bytes_max_;
  Mutex mutex_;
  uint64_t bytes_ GUARDED_BY(mutex_) = 0;
  std::vector<std::atomic<bool>*> waiting_ GUARDED_BY(mutex_);
};

}  // namespace pscloud

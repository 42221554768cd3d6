#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <utility>

#include "base/mutex.h"

namespace pscloud {

// First in, first out, between threads; holds at most `bytes_max` (but always takes one item into an empty
// queue, however large, so that nothing waits for ever).
template <class T>
class BoundedQueue {
 public:
  explicit BoundedQueue(uint64_t bytes_max) : bytes_max_(bytes_max) {}

  // Waits for room, at most `timeout`. False if there was none or the queue is closed; `item` is then unchanged.
  bool push(T& item, uint64_t bytes, std::chrono::microseconds timeout) {
    MutexLock lock(mutex_);
    changed_.wait_for(mutex_, timeout, [&]() REQUIRES(mutex_) { return closed_ || fits(bytes); });
    if (closed_ || !fits(bytes)) return false;
    items_.emplace_back(std::move(item), bytes);
    bytes_ += bytes;
    changed_.notify_all();
    return true;
  }

  // Waits for an item, at most `timeout`. False if none came; after close() the items left still come.
  bool pop(T& item, std::chrono::microseconds timeout) {
    MutexLock lock(mutex_);
    changed_.wait_for(mutex_, timeout, [&]() REQUIRES(mutex_) { return closed_ || !items_.empty(); });
    if (items_.empty()) return false;
    item = std::move(items_.front().first);
    bytes_ -= items_.front().second;
    items_.pop_front();
    changed_.notify_all();
    return true;
  }

  // No more items; wakes everybody.
  void close() {
    MutexLock lock(mutex_);
    closed_ = true;
    changed_.notify_all();
  }

  bool closed() const {
    MutexLock lock(mutex_);
    return closed_;
  }
  uint64_t bytes() const {
    MutexLock lock(mutex_);
    return bytes_;
  }

 private:
  bool fits(uint64_t bytes) const REQUIRES(mutex_) { return items_.empty() || bytes_ + bytes <= bytes_max_; }

  const uint64_t bytes_max_;
  mutable Mutex mutex_;
  CondVar changed_;
  std::deque<std::pair<T, uint64_t>> items_ GUARDED_BY(mutex_);
  uint64_t bytes_ GUARDED_BY(mutex_) = 0;
  bool closed_ GUARDED_BY(mutex_) = false;
};

}  // namespace pscloud

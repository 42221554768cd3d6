#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

// Clang checks at compile time that what is GUARDED_BY a mutex is touched only while it is held.
#if defined(__clang__)
#define PSCLOUD_ANNOTATE(x) __attribute__((x))
#else
#define PSCLOUD_ANNOTATE(x)
#endif
#define GUARDED_BY(mutex) PSCLOUD_ANNOTATE(guarded_by(mutex))
#define REQUIRES(mutex) PSCLOUD_ANNOTATE(requires_capability(mutex))
#define EXCLUDES(mutex) PSCLOUD_ANNOTATE(locks_excluded(mutex))

namespace pscloud {

class PSCLOUD_ANNOTATE(capability("mutex")) Mutex {
 public:
  void lock() PSCLOUD_ANNOTATE(acquire_capability()) { mutex_.lock(); }
  bool try_lock() PSCLOUD_ANNOTATE(try_acquire_capability(true)) { return mutex_.try_lock(); }
  void unlock() PSCLOUD_ANNOTATE(release_capability()) { mutex_.unlock(); }

 private:
  friend class CondVar;
  std::mutex mutex_;
};

// Holds a Mutex for the length of a block.
class PSCLOUD_ANNOTATE(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) PSCLOUD_ANNOTATE(acquire_capability(mutex)) : mutex_(mutex) { mutex_.lock(); }
  ~MutexLock() PSCLOUD_ANNOTATE(release_capability()) { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

// Waits for a condition that a Mutex protects; every wait has a deadline.
class CondVar {
 public:
  void notify_all() { condition_.notify_all(); }

  // False if `predicate` still does not hold after `timeout`. The caller holds `mutex`.
  template <class Predicate>
  bool wait_for(Mutex& mutex, std::chrono::microseconds timeout, Predicate predicate) REQUIRES(mutex) {
    // Not condition_variable_any, which takes a mutex of its own around each wait and each notice.
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    const bool holds = condition_.wait_for(lock, timeout, predicate);
    lock.release();  // the caller goes on holding it
    return holds;
  }

 private:
  std::condition_variable condition_;
};

}  // namespace pscloud

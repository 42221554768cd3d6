#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "net/socket.h"
#include "pscloud/error.h"

namespace pscloud {

// Tells who is ready: sockets, timers, work from other threads. Waiting and doing are two calls, so that a thread may
// wait without holding what the work needs: whoever comes first may do the work (engine/node_loop.h).
// One thread at a time calls what is not marked otherwise.
class Reactor {
 public:
  using SteadyTime = std::chrono::steady_clock::time_point;
  using TimerId = std::pair<SteadyTime, uint64_t>;

  // What a watched descriptor has become. One that failed is all of it: trying it tells why.
  struct Change {
    bool readable = false;
    bool writable = false;
    bool ended = false;  // the peer sends nothing more: after what is still to be read comes the end, with no new edge
  };
  using Ready = std::function<void(Change)>;

  static Result<std::unique_ptr<Reactor>> make();
  ~Reactor();

  // Calls `ready` once for each change (edges): after it, read or write until nothing moves. The descriptor stays the
  // caller's; unwatch() before it is closed. kUnavailable if the system has no room.
  Result<uint64_t> watch(int fd, Ready ready);
  // Wakes whoever waits when `bell`, an eventfd, is rung; there is nothing to call.
  Result<uint64_t> watch_bell(int bell);
  void unwatch(int fd, uint64_t watch);

  TimerId set_timer(SteadyTime when, std::function<void()> work);
  void clear_timer(const TimerId& timer);  // one that has fired or was cleared is left alone

  // Runs `work` in this turn or the next, after what is being done now.
  void later(std::function<void()> work) { later_.push_back(std::move(work)); }
  // From any thread: runs `work` in a later turn.
  void post(std::function<void()> work) EXCLUDES(mutex_);

  // Does what is due, without waiting. True if there was anything.
  bool turn();
  // Work is left for another turn: do not wait.
  bool has_work() const { return !later_.empty(); }
  // Any thread, also while another is in turn(): returns when turn() may have something to do, at most after `at_most`;
  // false if nothing came. One thread at a time may be `interruptible`: then it ends with interrupt() too, be that
  // before or meanwhile.
  bool wait(Duration at_most, bool interruptible = false) const;
  void interrupt() { ring(interrupted_.get()); }

 private:
  Reactor(Fd epoll, Fd bell, Fd timer, Fd interrupted);
  void arm();
  void take_posted() EXCLUDES(mutex_);

  const Fd epoll_;
  const Fd bell_;         // eventfd: work was posted
  const Fd timer_;        // timerfd: the first of timers_ is due
  const Fd interrupted_;  // eventfd, not watched
  SteadyTime armed_ = SteadyTime::max();

  uint64_t last_id_ = 2;                         // 1 and 2 are bell and timer
  std::unordered_map<uint64_t, Ready> watches_;  // by id: one that is gone is not called
  std::map<TimerId, std::function<void()>> timers_;
  std::vector<std::function<void()>> later_;

  Mutex mutex_;
  std::vector<std::function<void()>> posted_ GUARDED_BY(mutex_);
};

}  // namespace pscloud

#pragma once

#include <chrono>
#include <cstdint>

namespace pscloud {

using Duration = std::chrono::microseconds;
inline double in_seconds(Duration d) { return static_cast<double>(d.count()) * 1e-6; }

// A point on the time line of a Clock; those of different clocks do not compare.
struct Time {
  int64_t us = 0;

  auto operator<=>(const Time&) const = default;
  Time operator+(Duration d) const { return {us + d.count()}; }
  Time operator-(Duration d) const { return {us - d.count()}; }
  Duration operator-(Time other) const { return Duration(us - other.us); }
  static constexpr Time never() { return {INT64_MAX}; }
};

// Since 1970, by the clock on the wall: for what others read, never to measure how long something takes.
inline int64_t unix_seconds_now() { return std::chrono::system_clock::to_time_t(std::chrono::system_clock::now()); }
// The same with what is less than a second.
inline double unix_s_now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// Where the engine gets its time from, so that the simulator can give it another. Monotonic.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual Time now() const = 0;
};

class SystemClock final : public Clock {
 public:
  Time now() const override {
    return {std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now().time_since_epoch()).count()};
  }
};

// Stands still until told to move: for tests and the simulator.
class ManualClock final : public Clock {
 public:
  Time now() const override { return now_; }
  void advance_to(Time time) { now_ = time > now_ ? time : now_; }
  void advance(Duration d) { now_ = now_ + d; }

 private:
  Time now_{1};
};

}  // namespace pscloud

#pragma once

#include <chrono>
#include <functional>

#include "pscloud/error.h"

namespace pscloud {

// For who waits for something that must be asked for: soon at first, then less and less often, until a deadline or
// until the user wants no more.
class Patience {
 public:
  using Clock = std::chrono::steady_clock;

  Patience(Clock::time_point deadline, std::function<bool()> cancelled)
      : deadline_(deadline), cancelled_(std::move(cancelled)) {}

  bool is_over() const { return Clock::now() >= deadline_; }
  // Before the next look. kFailed if the user wants no more.
  Result<> pause();

 private:
  const Clock::time_point deadline_;
  const std::function<bool()> cancelled_;
  std::chrono::milliseconds next_{100};
};

}  // namespace pscloud

#pragma once

#include <utility>

#include "base/clock.h"
#include "base/log.h"

namespace pscloud {

// Keeps strangers from filling the log: lets a few lines through each second, then says how many were left out.
class LogLimit {
 public:
  static constexpr int kLinesPerSecond = 10;

  explicit LogLimit(const Clock& clock) : clock_(clock) {}
  ~LogLimit() { tell_left_out(); }

  template <class... Args>
  void warning(fmt::format_string<Args...> text, Args&&... args) {
    const Time now = clock_.now();
    if (now >= second_end_) {
      second_end_ = now + std::chrono::seconds(1);
      lines_ = 0;
      tell_left_out();
    }
    if (++lines_ <= kLinesPerSecond) {
      log_warning(text, std::forward<Args>(args)...);
    } else {
      ++left_out_;
    }
  }

 private:
  void tell_left_out() {
    if (left_out_ > 0) log_warning("{} more lines about refused or broken connections were left out", left_out_);
    left_out_ = 0;
  }

  const Clock& clock_;  // borrowed
  Time second_end_{0};
  int lines_ = 0;
  int left_out_ = 0;
};

}  // namespace pscloud

#pragma once

#include <unistd.h>

#include <atomic>
#include <string>
#include <utility>

#include "base/log.h"
#include "cli/local/line_channel.h"
#include "cli/signals.h"

namespace pscloud {

// Ctrl-C for a verb that asks from time to time whether to go on. What breaks because of it is not logged: the user
// wants it so. Make it before any other thread.
class Interruption {
 public:
  // If there is a file of that name when the signal comes, the machine is about to be taken away: then this is no
  // interruption, but a wish to leave in good order.
  explicit Interruption(std::string notice_file = "") : notice_file_(std::move(notice_file)) {
    signals_.watch([this](int) {
      if (!notice_file_.empty() && ::access(notice_file_.c_str(), F_OK) == 0) {
        leaving_ = true;
        return;
      }
      set_log_level(LogLevel::kSilent);
      happened_ = true;
    });
  }

  bool happened() const { return happened_; }
  bool leaving() const { return leaving_; }
  Cancelled cancelled() const {
    return [this] { return happened(); };
  }

 private:
  const std::string notice_file_;
  std::atomic<bool> happened_ = false;
  std::atomic<bool> leaving_ = false;
  Signals signals_;  // last: it calls what uses the others
};

}  // namespace pscloud

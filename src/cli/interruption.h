#pragma once

#include "base/log.h"
#include "cli/line_channel.h"
#include "cli/signals.h"

namespace pscloud {

// Ctrl-C for a verb that asks from time to time whether to go on. What breaks because of it is not logged: the user
// wants it so. Make it before any other thread.
class Interruption {
 public:
  Interruption() {
    signals_.watch([](int) { set_log_level(LogLevel::kSilent); });
  }

  bool happened() const { return signals_.received() != 0; }
  Cancelled cancelled() const {
    return [this] { return happened(); };
  }

 private:
  Signals signals_;
};

}  // namespace pscloud

#pragma once

#include <csignal>

#include "base/fd.h"

namespace pscloud {

// SIGINT, SIGTERM and SIGHUP as something to wait for, and not an end of the process; SIGPIPE as nothing, so that a
// terminal that goes away takes no run with it. Make it before any thread. Processes that are started meanwhile inherit
// the mask and must give it back.
class Interrupts {
 public:
  Interrupts();
  ~Interrupts();  // as it was before
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  // Readable when there is one.
  int fd() const { return fd_.get(); }
  // How many have come since the last time. A SIGHUP is the first of all, or none.
  int take();

 private:
  sigset_t before_{};
  Fd fd_;
  bool heard_ = false;
};

}  // namespace pscloud

#pragma once

#include <signal.h>

namespace pscloud {

// OpenSSL writes to sockets without MSG_NOSIGNAL. SIGPIPE then goes to the writing thread, so it is enough to block it
// there for the length of the write; the program around us keeps its own way with signals.
class SigpipeBlock {
 public:
  SigpipeBlock();
  ~SigpipeBlock();
  SigpipeBlock(const SigpipeBlock&) = delete;
  SigpipeBlock& operator=(const SigpipeBlock&) = delete;

  // Blocks it for good on the calling thread, one of our own: the blocks above then cost one call to the system.
  static void for_thread();

 private:
  sigset_t before_;
};

}  // namespace pscloud

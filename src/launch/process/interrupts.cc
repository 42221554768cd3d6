#include "launch/process/interrupts.h"

#include <sys/signalfd.h>
#include <unistd.h>

#include "base/check.h"

namespace pscloud {

Interrupts::Interrupts() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&set, signal);
  fd_ = Fd(::signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC));
  CHECK(fd_);
  sigaddset(&set, SIGPIPE);
  CHECK(::pthread_sigmask(SIG_BLOCK, &set, &before_) == 0);
}

Interrupts::~Interrupts() {
  // Or they would come as soon as they may.
  take();
  sigset_t pipe;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  const timespec at_once{};
  while (::sigtimedwait(&pipe, nullptr, &at_once) > 0) continue;
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

int Interrupts::take() {
  int count = 0;
  signalfd_siginfo info{};
  while (::read(fd_.get(), &info, sizeof info) == sizeof info) {
    // A window that is closed hangs up twice, by the shell and by the kernel: that is nobody who cannot wait.
    if (info.ssi_signo == SIGHUP && heard_) continue;
    heard_ = true;
    ++count;
  }
  return count;
}

}  // namespace pscloud

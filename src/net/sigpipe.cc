#include "net/sigpipe.h"

#include <pthread.h>
#include <time.h>

namespace pscloud {
namespace {

sigset_t pipe_only() {
  sigset_t pipe;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  return pipe;
}

}  // namespace

SigpipeBlock::SigpipeBlock() {
  const sigset_t pipe = pipe_only();
  pthread_sigmask(SIG_BLOCK, &pipe, &before_);
}

SigpipeBlock::~SigpipeBlock() {
  if (sigismember(&before_, SIGPIPE) == 1) return;
  const sigset_t pipe = pipe_only();
  const timespec at_once{};
  sigtimedwait(&pipe, nullptr, &at_once);  // takes ours away, if there is one: none can have waited before
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

void SigpipeBlock::for_thread() {
  const sigset_t pipe = pipe_only();
  pthread_sigmask(SIG_BLOCK, &pipe, nullptr);
}

}  // namespace pscloud

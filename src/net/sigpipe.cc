#include "net/sigpipe.h"

#include <pthread.h>
#include <time.h>

namespace pscloud {
namespace {

thread_local bool thread_blocks = false;

sigset_t pipe_only() {
  sigset_t pipe;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  return pipe;
}

}  // namespace

SigpipeBlock::SigpipeBlock() {
  if (thread_blocks) return;
  sigset_t pending;
  sigpending(&pending);
  was_pending_ = sigismember(&pending, SIGPIPE) == 1;
  const sigset_t pipe = pipe_only();
  pthread_sigmask(SIG_BLOCK, &pipe, &before_);
}

SigpipeBlock::~SigpipeBlock() {
  if (thread_blocks) return;
  if (!was_pending_) {
    const sigset_t pipe = pipe_only();
    const timespec at_once{};
    sigtimedwait(&pipe, nullptr, &at_once);  // takes ours away, if there is one
  }
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

void SigpipeBlock::for_thread() {
  const sigset_t pipe = pipe_only();
  pthread_sigmask(SIG_BLOCK, &pipe, nullptr);
  thread_blocks = true;
}

}  // namespace pscloud

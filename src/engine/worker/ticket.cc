#include "engine/worker/ticket.h"

namespace pscloud {

void Ticket::State::finish(const Result<>& outcome) {
  std::vector<std::function<void(const Result<>&)>> waiting;
  {
    MutexLock lock(mutex);
    if (done) return;
    result = outcome;
    done = true;
    waiting = std::move(callbacks);
    changed.notify_all();
  }
  for (auto& callback : waiting) {
    std::function<void()> task = [callback = std::move(callback), outcome] { callback(outcome); };
    // Costs nothing in the queue's account: it always fits. Without the thread (the worker is gone) it runs here.
    if (!callback_queue->push(task, 0, std::chrono::seconds(0))) task();
  }
}

Result<> Ticket::wait() const {
  State& state = *state_;
  // Not the caller's clock but the worker's decides when time is over: only the worker knows that no more bytes
  // come. It always decides: by the request's deadline, or when it ends.
  if (const auto loop = state.done ? nullptr : state.loop.lock()) loop->drive_until(state.done);
  MutexLock lock(state.mutex);
  while (!state.changed.wait_for(state.mutex, std::chrono::seconds(1), [&] { return state.done.load(); })) {
  }
  return state.result;
}

bool Ticket::done() const { return state_->done; }

void Ticket::then(std::function<void(const Result<>&)> callback) const {
  Result<> result;
  {
    MutexLock lock(state_->mutex);
    if (!state_->done) {
      state_->callbacks.push_back(std::move(callback));
      return;
    }
    result = state_->result;
  }
  callback(result);
}

}  // namespace pscloud

#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "base/mutex.h"
#include "base/queue.h"
#include "pscloud/worker.h"

namespace pscloud {

// Callbacks of tickets that are done, on their way to the thread that runs them. Bounded by the requests under way:
// each can have put only its own callbacks here.
using CallbackQueue = BoundedQueue<std::function<void()>>;

struct Ticket::State {
  explicit State(std::shared_ptr<CallbackQueue> queue) : callback_queue(std::move(queue)) {}

  const std::shared_ptr<CallbackQueue> callback_queue;
  Mutex mutex;
  CondVar changed;
  bool done GUARDED_BY(mutex) = false;
  Result<> result GUARDED_BY(mutex);
  std::vector<std::function<void(const Result<>&)>> callbacks GUARDED_BY(mutex);

  // Once; a second call changes nothing.
  void finish(const Result<>& outcome);
};

}  // namespace pscloud

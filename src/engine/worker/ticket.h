#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include "base/mutex.h"
#include "base/queue.h"
#include "engine/node_loop.h"
#include "pscloud/worker.h"

namespace pscloud {

// Callbacks of tickets that are done, on their way to the thread that runs them. Bounded by the requests under way:
// each can have put only its own callbacks here.
using CallbackQueue = BoundedQueue<std::function<void()>>;

struct Ticket::State {
  State(std::shared_ptr<CallbackQueue> queue, std::weak_ptr<NodeLoop> node_loop)
      : callback_queue(std::move(queue)), loop(std::move(node_loop)) {}

  const std::shared_ptr<CallbackQueue> callback_queue;
  const std::weak_ptr<NodeLoop> loop;  // whose work brings the outcome; gone with the worker
  std::atomic<bool> done{false};       // set when the outcome is there
  Mutex mutex;
  CondVar changed;
  Result<> result GUARDED_BY(mutex);
  std::vector<std::function<void(const Result<>&)>> callbacks GUARDED_BY(mutex);

  // Once; a second call changes nothing.
  void finish(const Result<>& outcome);
};

}  // namespace pscloud

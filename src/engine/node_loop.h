#pragma once

#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>

#include "base/clock.h"
#include "base/metrics.h"
#include "base/random.h"
#include "net/http_server.h"
#include "net/transport.h"
#include "pscloud/node.h"

namespace pscloud {

// The thread a node lives on, with what it needs of the outside world: transport, clock, random numbers.
class NodeLoop {
 public:
  // With the transport that `options` ask for: inproc, TLS, or plaintext.
  static Result<std::unique_ptr<NodeLoop>> make(const NodeOptions& options);
  ~NodeLoop();  // stops

  LoopTransport& transport() { return *transport_; }
  Clock& clock() { return clock_; }
  Random& random() { return random_; }

  // Starts the thread. `handler` is told everything, and `after` is called when it has handled something.
  void start(LaneHandler& handler, std::function<void()> after);

  // From any thread: runs `work` on the loop.
  void post(std::function<void()> work);

  // From any thread but the loop: runs `question` there and waits for its answer; `fallback` if the loop has stopped
  // or does not come to it within two seconds.
  template <class Answer>
  Answer ask(std::function<Answer()> question, Answer fallback) {
    auto promise = std::make_shared<std::promise<Answer>>();
    std::future<Answer> future = promise->get_future();
    post([promise, question = std::move(question)] { promise->set_value(question()); });
    promise.reset();
    if (future.wait_for(std::chrono::seconds(2)) != std::future_status::ready) return fallback;
    try {
      return future.get();
    } catch (const std::future_error&) {
      return fallback;  // the loop ended before it came to the question
    }
  }

  // Ends the thread. May be called twice and from any thread but the loop.
  void stop();

 private:
  class AfterEach;
  NodeLoop();

  SystemClock clock_;
  Random random_;
  std::unique_ptr<LoopTransport> transport_;
  std::unique_ptr<AfterEach> handler_;
  std::jthread thread_;
};

// Serves /health, /status and /metrics of a node, if `options` ask for it; null if not.
Result<std::unique_ptr<HttpServer>> serve_status(const NodeOptions& options, std::function<std::string()> status,
                                                 const Metrics& metrics);

}  // namespace pscloud

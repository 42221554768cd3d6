#pragma once

#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/random.h"
#include "net/transport.h"
#include "pscloud/node.h"

namespace pscloud {

// What a node lives on: the outside world (transport, clock, random numbers) and the lock of its state. Whoever holds
// the lock is "the loop": a thread of the loop's own, which sleeps while there is nothing to do, or a caller. A thread
// that waits for a request does the loop's work itself meanwhile: its answer wakes it and nobody else in between.
// Where both ends are in one process, and the LocalNetwork wants it, a thread that has sent something does the work of
// the other end too, unless one is at it: none is woken for it, and no more threads are at work than there are callers.
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

  // From any thread: runs `work` on the loop, soon.
  void post(std::function<void()> work);

  // From any thread but one that is the loop: runs `work` as the loop, now.
  template <class F>
  void call(F work) EXCLUDES(mutex_) {
    {
      MutexLock lock(mutex_);
      if (ended_) return;
      work();
      end_call();
    }
    transport_->run_others();
  }

  // The same for `work` that sends nothing and changes no time to wake up. Like a call it may set what others wait for.
  template <class F>
  void look(F work) EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    if (ended_) return;
    work();
    wake_others();
  }

  // From any thread but one that is the loop: does the loop's work until `done` is set. False if the loop has ended.
  bool drive_until(const std::atomic<bool>& done) EXCLUDES(mutex_);

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

  // Whether a thread looks before it sleeps. Only while that pays: news come faster than a thread is woken.
  class Spin {
   public:
    bool on() const { return on_; }
    void looked(bool came);
    void slept(Duration time);

   private:
    static constexpr int kMissesMax = 4;
    bool on_ = false;
    int misses_ = 0;
  };

  NodeLoop();
  void run() EXCLUDES(mutex_);
  void end_call() REQUIRES(mutex_);
  void wake_others() REQUIRES(mutex_);
  void let_go() REQUIRES(mutex_);
  void rest(Spin& spin, const std::atomic<bool>* done) REQUIRES(mutex_);
  bool look_a_while() EXCLUDES(mutex_);
  bool turn() REQUIRES(mutex_);
  void help_others() REQUIRES(mutex_);
  bool turn_for_other() EXCLUDES(mutex_);

  SystemClock clock_;
  Random random_;
  std::unique_ptr<LoopTransport> transport_;
  std::unique_ptr<AfterEach> handler_;

  Mutex mutex_;  // of the transport, the handler and all that they touch
  CondVar changed_;
  // What the caller waits for that does the work, and sleeps without the lock in between; null: none does.
  const std::atomic<bool>* driver_ GUARDED_BY(mutex_) = nullptr;
  int followers_ GUARDED_BY(mutex_) = 0;  // callers that wait while another drives
  Time last_driven_ GUARDED_BY(mutex_);
  Spin callers_spin_ GUARDED_BY(mutex_);
  std::atomic<bool> left_over_{false};  // another node's thread found this one at work, and left it what has come
  bool ended_ GUARDED_BY(mutex_) = false;
  std::jthread thread_;  // last: it uses all the others
};

}  // namespace pscloud

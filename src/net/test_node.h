#pragma once

#include <functional>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "net/transport.h"

namespace pscloud {

inline SystemClock system_clock;

// What a TestNode has been told so far.
struct Seen {
  std::map<LaneId, Peer> opened;
  std::vector<LaneId> open_order;
  std::map<LaneId, std::vector<Frame>> frames;
  std::map<LaneId, Error> closed;
  size_t frames_not_kept = 0;
  int wakes = 0;
};

// A node for tests of transports: its loop runs on a thread of its own, and it writes down what it is told.
class TestNode final : public LaneHandler {
 public:
  struct Options {
    bool trust = true;  // each lane as it opens
    bool echo = false;  // sends each frame back
    bool keep = true;   // the frames; else they are only counted
  };
  explicit TestNode(std::unique_ptr<LoopTransport> transport) : TestNode(std::move(transport), Options{}) {}
  TestNode(std::unique_ptr<LoopTransport> transport, Options options)
      : options_(options), transport_(std::move(transport)), thread_([this] { transport_->run(*this); }) {}
  ~TestNode() override { stop(); }

  void stop() {
    transport_->stop();
    if (thread_.joinable()) thread_.join();
  }

  // Runs `work` on the loop thread and gives its result. Not after stop().
  template <class F>
  auto call(F work) {
    std::packaged_task<std::invoke_result_t<F, LoopTransport&>()> task([&] { return work(*transport_); });
    auto result = task.get_future();
    transport_->post([&task] { task(); });
    return result.get();
  }

  Result<std::string> listen(const std::string& address) {
    return call([&](LoopTransport& transport) { return transport.listen(address); });
  }
  LaneId connect(const std::string& address, Role expected = Role::kServer) {
    return call([&](LoopTransport& transport) { return transport.connect(address, expected); });
  }
  void send(LaneId lane, Frame frame) {
    call([&](LoopTransport& transport) { transport.send(lane, std::move(frame)); });
  }
  void close(LaneId lane) {
    call([&](LoopTransport& transport) { transport.close(lane); });
  }
  LoopTransport& transport() { return *transport_; }

  // False if `predicate` does not come to hold within a time that is long even for a busy machine.
  bool wait(const std::function<bool(const Seen&)>& predicate) {
    MutexLock lock(mutex_);
    return changed_.wait_for(mutex_, std::chrono::seconds(30), [&]() REQUIRES(mutex_) { return predicate(seen_); });
  }
  bool wait_open(LaneId lane) {
    return wait([&](const Seen& seen) { return seen.opened.contains(lane); });
  }
  // The error of a lane that closes; one that says so if it does not.
  Error wait_closed(LaneId lane) {
    const bool closed = wait([&](const Seen& seen) { return seen.closed.contains(lane); });
    return closed ? seen().closed.at(lane) : timed_out("the lane stays open");
  }
  // The first `count` frames of a lane; fewer if no more come.
  std::vector<Frame> wait_frames(LaneId lane, size_t count) {
    wait([&](const Seen& seen) { return seen.frames.contains(lane) && seen.frames.at(lane).size() >= count; });
    const Seen now = seen();
    return now.frames.contains(lane) ? now.frames.at(lane) : std::vector<Frame>{};
  }
  // The `n`th lane that opens here, counted from 0; 0 if it does not.
  LaneId wait_lane(size_t n) {
    wait([&](const Seen& seen) { return seen.open_order.size() > n; });
    const Seen now = seen();
    return now.open_order.size() > n ? now.open_order[n] : 0;
  }
  Seen seen() {
    MutexLock lock(mutex_);
    return seen_;
  }

 private:
  void on_open(LaneId lane, const Peer& peer) override {
    if (options_.trust) transport_->trust(lane);
    note([&](Seen& seen) {
      seen.opened.emplace(lane, peer);
      seen.open_order.push_back(lane);
    });
  }
  void on_frame(LaneId lane, Frame frame) override {
    if (options_.echo) transport_->send(lane, frame);
    note([&](Seen& seen) {
      if (options_.keep) {
        seen.frames[lane].push_back(std::move(frame));
      } else {
        ++seen.frames_not_kept;
      }
    });
  }
  void on_close(LaneId lane, const Error& why) override {
    note([&](Seen& seen) { seen.closed.emplace(lane, why); });
  }
  void on_wake() override {
    note([&](Seen& seen) { ++seen.wakes; });
  }

  template <class F>
  void note(F change) {
    MutexLock lock(mutex_);
    change(seen_);
    changed_.notify_all();
  }

  const Options options_;
  std::unique_ptr<LoopTransport> transport_;
  Mutex mutex_;
  CondVar changed_;
  Seen seen_ GUARDED_BY(mutex_);
  std::jthread thread_;  // last: it uses all the others
};

}  // namespace pscloud

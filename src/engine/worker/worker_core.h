#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/metrics.h"
#include "base/random.h"
#include "engine/member.h"
#include "engine/worker/channel.h"
#include "engine/worker/slicer.h"
#include "net/transport.h"

namespace pscloud {

// A worker's part of the protocol: one channel to each owner, its clock, its place in the job.
// Plain state machine, touched by the loop thread only; worker.cc puts the thread-safe contract in front of it.
class WorkerCore final : public LaneHandler, private Member::Listener {
 public:
  struct Options {
    Member::Options member;
    uint64_t key_cache_bytes = uint64_t{64} << 20;
    uint64_t large_bytes = Channel::Options{}.large_bytes;
    bool shared_memory = false;
    Sabotage sabotage;
  };
  using Done = std::function<void(const Result<>&)>;

  WorkerCore(Options options, Transport& transport, Clock& clock, Random& random, Metrics& metrics);

  // `ready` is called once: with ok when requests can be made, else with why not.
  void start(Done ready);
  void on_open(LaneId lane, const Peer& peer) override;
  void on_frame(LaneId lane, Frame frame) override;
  std::span<std::byte> place_for(LaneId lane, const FrameHeader& header) override;
  void on_close(LaneId lane, const Error& why) override;
  void on_wake() override;

  // A request of so many slices: `done` when all are answered or its time is over. After it no sink is called.
  // `what` is for people: "pull on table 'w'". Null if it has ended already. How long it took is counted for a `type`
  // that pushes or pulls.
  struct Request;
  std::shared_ptr<Request> open_request(std::string what, size_t slices, Done done, FrameType type = FrameType::kClock);
  void submit(const std::shared_ptr<Request>& request, Slice slice);
  // All of it at once.
  void submit(std::string what, std::vector<Slice> slices, Done done);
  Channel& channel(uint32_t owner) { return *channels_[owner]; }
  // The same request to every owner.
  void submit_to_all(std::string what, FrameType type, const SharedBuffer& payload,
                     const std::function<void(const Part::Answer&)>& sink, Done done);
  // Ends the clock.
  void tick(Done done);
  // After a timeout a second call waits for the same barrier: this worker has come to it already.
  void barrier(Done done);
  // When all requests are answered, says goodbye; `done` when it was heard. Nothing may be asked afterwards.
  void leave(bool failed, std::string reason, Done done);

  uint32_t clock() const { return worker_clock_; }
  uint32_t owners() const { return static_cast<uint32_t>(channels_.size()); }
  int servers() const;
  const Member& member() const { return member_; }
  bool failed() const { return !failure_.message.empty(); }
  // For people: what the oldest request waits for; empty if nothing does.
  std::string waiting_for() const;
  std::string status_json() const;
  // For the simulator's checks.
  const std::vector<std::unique_ptr<Channel>>& channels() const { return channels_; }

 private:
  // Member::Listener
  void on_view(const View& view) override;
  void on_barrier(uint64_t number) override;
  void on_expelled(const Error& why) override { fail(why); }

  void finish(const std::shared_ptr<Request>& request);
  void expire_requests(Time now);
  void note_duration(const Request& request);
  uint32_t clock_distance() const;
  void fail(const Error& why);
  void settle();  // what may have become possible after any event: begin, leave, next wake-up

  const Options options_;
  Transport& transport_;
  Clock& clock_;
  Random& random_;
  Metrics& metrics_;
  Histogram& push_seconds_;
  Histogram& pull_seconds_;
  Gauge* distance_ = nullptr;  // once there is a clock
  Member member_;

  std::vector<std::unique_ptr<Channel>> channels_;          // by owner
  std::multimap<Time, std::shared_ptr<Request>> requests_;  // by deadline
  Done ready_;
  bool begun_ = false;
  uint32_t worker_clock_ = 0;
  std::shared_ptr<Request> barrier_;
  bool barrier_unclaimed_ = false;  // it was passed after we had given it up
  Done left_;
  bool leaving_ = false;
  Time leave_deadline_ = Time::never();
  LeaveMessage goodbye_;
  Error failure_{Code::kUnavailable, ""};
};

struct WorkerCore::Request {
  std::string what;
  FrameType type = FrameType::kClock;
  size_t left = 0;  // parts not answered
  Result<> outcome;
  Done done;  // empty when it was called
  Time deadline;
  std::shared_ptr<bool> wanted = std::make_shared<bool>(true);  // false when it is finished
};

}  // namespace pscloud

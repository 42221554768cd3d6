#pragma once

#include <cstdint>
#include <string>

#include "base/clock.h"
#include "base/random.h"
#include "engine/message.h"
#include "engine/timing.h"
#include "net/transport.h"

namespace pscloud {

// A node's side of its place in the job: joins the scheduler, keeps the latest View, beats, waits at barriers,
// says goodbye. Joins again by itself after a cut or a restart of the scheduler, telling it what it knew.
// Plain state machine: its node forwards to it what concerns its lane.
class Member {
 public:
  class Listener {
   public:
    virtual ~Listener() = default;
    virtual void on_view(const View& view) = 0;
    virtual void on_barrier(uint64_t number) = 0;
    // This node can take part no longer; comes once.
    virtual void on_expelled(const Error& why) = 0;
  };

  struct Options {
    std::string job;
    std::string scheduler;
    NodeInfo self;  // rank: a wish, or kNoRank
    Timing timing;
  };
  static constexpr uint32_t kNoRank = 0xffffffff;

  Member(Options options, Transport& transport, Clock& clock, Random& random, Listener& listener);

  void start();
  bool owns(LaneId lane) const { return lane != 0 && lane == lane_; }
  void on_open(LaneId lane);
  void on_frame(LaneId lane, const Frame& frame);
  void on_close(LaneId lane, const Error& why);
  void on_wake();
  Time next_wake() const;

  // The scheduler has given us a place.
  bool joined() const { return self() != nullptr; }
  const View& view() const { return view_; }
  const NodeInfo* self() const { return view_.find(options_.self.session); }
  uint64_t session() const { return options_.self.session; }

  // Comes to the next barrier; on_barrier() follows. One at a time.
  void arrive_at_barrier();

  // Says goodbye until the scheduler has heard it; left() tells when.
  void leave(bool failed, std::string reason);
  bool left() const { return left_; }

  // For people: what we wait for now; empty if nothing.
  std::string waiting_for() const;
  // What the node itself waits for: goes to the scheduler with the next heartbeat.
  void set_node_waiting_for(std::string text) { node_waiting_for_ = std::move(text); }

 private:
  void connect();
  void send(FrameType type, SharedBuffer payload, uint64_t seq = 0);
  void beat();
  void take_view(View view, uint64_t barriers);
  void expel(Error why);
  bool scheduler_is_silent() const;

  const Options options_;
  Transport& transport_;
  Clock& clock_;
  Random& random_;
  Listener& listener_;

  LaneId lane_ = 0;
  bool open_ = false;
  bool introduced_ = false;  // the scheduler has answered on this lane
  Time heard_;               // last sign of the scheduler
  bool asked_ = false;       // for a place: the scheduler may know us
  uint32_t unanswered_ = 0;  // beats since its last sign
  Time next_connect_ = Time::never();
  Time next_beat_ = Time::never();
  Duration backoff_{};
  Duration patience_{};  // for an attempt to connect
  Time started_;
  Time join_deadline_;
  bool told_to_wait_ = false;  // the scheduler knows us and counts its own time
  Time next_complaint_;
  std::string connect_error_;  // why the last attempt failed
  std::string missing_;        // whom the scheduler waits for

  View view_;
  uint64_t barriers_ = 0;  // passed
  bool at_barrier_ = false;
  std::string barrier_missing_;
  std::string node_waiting_for_;

  bool leaving_ = false;
  bool left_ = false;
  bool expelled_ = false;
  Time leave_deadline_ = Time::never();
  LeaveMessage goodbye_;
};

}  // namespace pscloud

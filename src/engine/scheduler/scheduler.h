#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "engine/message.h"
#include "engine/timing.h"
#include "net/transport.h"

namespace pscloud {

// Knows who takes part: waits for the nodes, gives ranks, notices deaths, holds barriers, ends the job.
// It holds no parameters: the data plane goes on without it, and a restarted one learns the job from its members.
// Plain state machine, touched by the loop thread only.
class Scheduler final : public LaneHandler {
 public:
  struct Options {
    std::string job;
    int servers = 1;
    int workers = 1;
    int workers_min = 0;  // 0: all
    WorkerDeath worker_death = WorkerDeath::kContinue;
    Timing timing;
  };

  Scheduler(Options options, Transport& transport, Clock& clock);

  void start();
  void on_open(LaneId lane, const Peer& peer) override;
  void on_frame(LaneId lane, Frame frame) override;
  void on_close(LaneId lane, const Error& why) override;
  void on_wake() override;

  // The job is over and everybody has been told.
  bool finished() const { return finished_; }
  // Ok if the workers ended the job; else why it failed.
  Result<> outcome() const;
  // This scheduler itself began the job: it did not take it up from one that died.
  bool began() const { return began_; }
  // Ends the job from outside, e.g. for Ctrl-C.
  void fail_job(std::string reason);

  const View& view() const { return view_; }
  // Who is missing, for people; empty if nobody.
  std::string waiting_for() const;
  std::string status_json() const;
  // Of the nodes that are alive, that of which nothing was heard for longest.
  double longest_silence_ms() const;

 private:
  struct Entry {
    NodeInfo info;
    bool placed = false;  // has a rank and stands in the view
    LaneId lane = 0;      // 0: not connected
    Time heard;
    uint64_t barrier = 0;  // the one it has arrived at
    std::string waiting_for;
  };
  struct Lane {
    LaneId id;
    Peer peer;
  };

  void on_join(LaneId lane, const Frame& frame);
  void on_heartbeat(Entry& entry, const Frame& frame);
  void on_barrier(Entry& entry, uint64_t number);
  void on_leave(Entry& entry, const Frame& frame);

  bool learn(const View& view);  // from a member of the job we forgot; false if it cannot be ours
  void form();
  void place_late_workers();
  void bury(Entry& entry, const std::string& why);
  void check_barrier();
  void check_end();
  void publish();
  void send_away();

  Entry* find(uint64_t session);
  const Entry* maybe_dead() const;
  std::optional<uint32_t> free_rank(uint32_t wish) const;
  size_t count(Role role, NodeState state) const;
  bool fits_its_process(const NodeInfo& self) const;
  std::vector<uint64_t> whole_servers() const;
  std::string missing_nodes() const;
  std::string barrier_waits_for() const;
  void send(LaneId lane, FrameType type, SharedBuffer payload, uint64_t seq = 0);
  void send_view(Entry& entry);
  void refuse(LaneId lane, const std::string& why);
  void schedule_wake();

  const Options options_;
  Transport& transport_;
  Clock& clock_;

  std::vector<Entry> entries_;  // in order of arrival
  std::vector<Lane> lanes_;
  View view_;
  SharedBuffer encoded_view_;
  uint64_t barriers_ = 0;  // released
  std::string barrier_missing_;
  bool recovering_ = false;  // we restarted: until all members of the old view are back or dead
  Time recover_until_ = Time::never();
  Time next_tick_;
  Time form_deadline_;
  Time next_complaint_;  // while the job forms
  Time all_dead_since_ = Time::never();
  Time stop_deadline_ = Time::never();
  bool finished_ = false;
  bool began_ = false;
  Code failure_code_ = Code::kFailed;
};

}  // namespace pscloud

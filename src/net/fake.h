#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <queue>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "net/transport.h"

namespace pscloud {

// How badly a FakeNetwork behaves; chances are for each frame.
struct NetworkFaults {
  double lose = 0;
  double repeat = 0;
  double reorder = 0;  // overtakes or is overtaken
  double slow = 0;     // late by up to slow_max
  Duration slow_max = std::chrono::seconds(2);
  double cut = 0;        // the connection breaks
  double half_open = 0;  // of the cuts: only one end is told
  Duration delay_max = std::chrono::milliseconds(1);
};

class FakeTransport;

// A whole network in one thread under one seed: hosts, connections and a queue of events in virtual time.
// Loses, repeats, delays and reorders frames, cuts connections, splits hosts from each other, stops and kills hosts.
// The same seed and the same calls give the same run.
class FakeNetwork {
 public:
  FakeNetwork(uint64_t seed, ManualClock& clock) : random_(seed), clock_(clock) {}

  // A host with nothing on it; events reach `handler` until kill(). Each host is used once.
  FakeTransport& add_host(LaneHandler& handler);

  void set_faults(const NetworkFaults& faults) { faults_ = faults; }
  // Frames from `a` to `b` are lost until unblock(), once for each block(), or heal(); the other direction is not
  // touched.
  void block(int a, int b) { blocked_.emplace(a, b); }
  void unblock(int a, int b) {
    if (const auto found = blocked_.find({a, b}); found != blocked_.end()) blocked_.erase(found);
  }
  void heal() { blocked_.clear(); }
  // Nothing happens on this host until `until`; then everything at once, as after SIGSTOP and SIGCONT.
  void pause(int host, Time until);
  // The host is gone. `silent`: as by a power cut, so that its peers are not told.
  void kill(int host, bool silent);

  // Calls `work` at `when`, on no host.
  void at(Time when, std::function<void()> work);

  // Runs the next event and moves the clock to it. False when nothing is left.
  bool step();

  // What the last step was, and for counting: how often each fault has happened, by name.
  struct Step {
    Time time;
    int from = -1;
    int to = -1;
    const char* what = "";
    FrameType type{};
    uint64_t session = 0;
    uint64_t seq = 0;
  };
  const Step& last_step() const { return last_; }
  const std::map<std::string, uint64_t>& fault_counts() const { return fault_counts_; }
  void count_fault(const std::string& kind) { ++fault_counts_[kind]; }
  // How many frames and connections between these hosts were lost, late or cut since then, half a minute back at most.
  uint64_t faults_between(int a, int b, Time since) const;

 private:
  friend class FakeTransport;

  struct Connection {
    int host[2];  // 0: who connected, 1: who accepted
    LaneId lane[2];
    bool open[2] = {false, false};
    bool deaf[2] = {false, false};  // closed by that end itself, or told: it is told no more
    bool broken = false;
    bool trusted[2] = {false, false};
    Time last_arrival[2] = {};  // at each end, for keeping order
  };
  enum class Kind : uint8_t { kAccept, kOpened, kRefused, kFrame, kClosed, kWake, kWork };
  struct Event {
    Time time;
    uint64_t order;  // of making, so that equal times have an order
    Kind kind;
    int host = -1;
    size_t connection = 0;
    int end = 0;  // of the connection: where it happens
    HeaderBytes header{};
    SharedBuffer payload;
    SharedBuffer values;
    std::function<void()> work;
  };
  struct Later {
    bool operator()(const Event& a, const Event& b) const {
      return a.time != b.time ? a.time > b.time : a.order > b.order;
    }
  };

  void push(Event event);
  LaneId connect(int host, const std::string& address);
  void send(int host, LaneId lane, Frame frame);
  void close(LaneId lane, bool tell);
  void wake_at(int host, Time when);
  void deliver(Event& event);
  Duration delay(const Connection& connection);
  void count_fault(const std::string& kind, const Connection& connection);
  bool blocked(int a, int b) const { return blocked_.contains({a, b}); }

  Random random_;
  ManualClock& clock_;
  NetworkFaults faults_;
  std::multiset<std::pair<int, int>> blocked_;
  std::vector<std::unique_ptr<FakeTransport>> hosts_;
  std::map<std::string, int> listeners_;
  std::deque<Connection> connections_;
  std::map<LaneId, std::pair<size_t, int>> lanes_;  // connection and end
  std::priority_queue<Event, std::vector<Event>, Later> events_;
  uint64_t orders_ = 0;
  LaneId next_lane_ = 1;
  Step last_;
  std::map<std::string, uint64_t> fault_counts_;
  struct Fault {
    Time time;
    int host[2];
  };
  std::deque<Fault> recent_faults_;
};

// One host of a FakeNetwork.
class FakeTransport final : public Transport {
 public:
  FakeTransport(FakeNetwork& network, int host, LaneHandler& handler)
      : network_(network), host_(host), handler_(&handler) {}

  int host() const { return host_; }
  Result<std::string> listen(const std::string& address) override;
  LaneId connect(const std::string& address, Role) override { return network_.connect(host_, address); }
  void send(LaneId lane, Frame frame) override { network_.send(host_, lane, std::move(frame)); }
  uint64_t unsent_bytes(LaneId) const override { return 0; }
  void trust(LaneId lane) override;
  void close(LaneId lane) override;
  void wake_at(Time when) override { network_.wake_at(host_, when); }

 private:
  friend class FakeNetwork;
  FakeNetwork& network_;
  const int host_;
  LaneHandler* handler_;  // null: killed
  Time paused_until_{};
  Time wake_wanted_ = Time::never();
  Time wake_event_ = Time::never();  // the earliest one in the queue
};

}  // namespace pscloud

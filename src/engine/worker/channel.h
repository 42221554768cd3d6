#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/metrics.h"
#include "base/random.h"
#include "engine/filter/filter.h"
#include "engine/message.h"
#include "engine/sabotage.h"
#include "engine/timing.h"
#include "engine/traffic.h"
#include "net/transport.h"

namespace pscloud {

// One part of a worker's request: what goes to one owner in one frame.
struct Part {
  FrameType type = FrameType::kPull;
  TableId table = 0;
  std::shared_ptr<const TableSpec> spec;  // of the table that is pushed to or pulled from; else null
  uint32_t clock = 0;
  bool range = false;
  uint64_t in_place_bytes = 0;  // of a pull of where the rows lie; else 0
  uint64_t first = 0;
  uint32_t count = 0;
  std::vector<Key> keys;
  Floats values;
  std::span<float> out;                // of a pull whose rows lie together; else the answer is for `done` to spread
  SharedBuffer raw;                    // payload of the other requests
  std::shared_ptr<const bool> wanted;  // false: given up, `out` is the user's again

  struct Answer {
    Floats values;     // of a pull
    SharedBuffer raw;  // of a pull in place, and of the other requests
  };
  std::function<void(Result<Answer>)> done;  // called once

  bool pulls() const { return type == FrameType::kPull || type == FrameType::kPushPull; }
};

// A worker's stream of requests to one owner: numbers them, keeps within the owner's credit, keeps each until it is
// answered. After a cut or a silence it first asks what the owner has, then sends again only what is missing.
// Plain state machine: its node forwards to it what concerns its lane.
class Channel {
 public:
  struct Options {
    NodeInfo owner;
    uint64_t session = 0;  // of this worker
    Timing timing;
    uint64_t key_cache_bytes = uint64_t{64} << 20;
    uint64_t large_bytes = 256 << 10;  // from this on a part lets smaller ones of other tables go first
    bool shared_memory = false;        // if the owner has it and is on this machine
    Sabotage sabotage;
  };

  Channel(Options options, Transport& transport, Clock& clock, Random& random, Metrics& metrics);

  void start() { connect(); }
  bool owns(LaneId lane) const { return lane != 0 && lane == lane_; }
  void on_open(LaneId lane);
  void on_frame(const Frame& frame);
  // Where the values of this reply are wanted.
  std::span<std::byte> place_for(const FrameHeader& header);
  // Requests are wanted no longer: nothing may arrive in their places any more, what of them was not sent never is, and
  // who waits to copy for them waits no longer.
  void vacate();
  void on_close(const Error& why);
  void on_wake();
  Time next_wake() const;

  void submit(Part part);
  // Everything that waits here ends with `why`, and so will whatever comes.
  void fail(const Error& why);

  bool local() const { return local_; }
  // Memory for the values of a part, from where sending them costs least.
  Buffer allocate(size_t size) { return transport_.allocate(lane_, size); }
  // Sets `*flag` when the values of a part, of so many bytes, should be copied: those of a large one when no other
  // waits here to be sent, since to copy far ahead of the owner would only push what it needs next out of the cache.
  // Sets it too when the request is not `wanted` any more.
  void tell_when_to_copy(uint64_t bytes, std::shared_ptr<const bool> wanted, std::atomic<bool>* flag);

  bool synced() const { return synced_; }            // the owner knows us
  uint32_t min_clock() const { return min_clock_; }  // of all workers, as the owner last said
  bool idle() const { return queue_.empty() && sent_.empty(); }
  const NodeInfo& owner() const { return options_.owner; }
  // Set when the owner says that this worker takes part no longer.
  const std::string& fenced() const { return fenced_; }
  // For people: what the oldest request here waits for, or this one.
  std::string waiting_for(const std::shared_ptr<const bool>& wanted = nullptr) const;
  // A part of this request was sent and is not answered.
  bool has_sent(const std::shared_ptr<const bool>& wanted) const;
  // Tells of each part that waits here its request, and whether it was sent.
  template <class Each>
  void each_waiting(Each each) const {
    for (const auto& [seq, sent] : sent_) each(sent.part.wanted, true);
    for (const Part& part : queue_) each(part.wanted, false);
    for (const Waiter& waiter : waiters_) each(waiter.wanted, false);
  }
  // For the simulator's checks.
  uint64_t unanswered_bytes() const { return sent_bytes_; }

 private:
  struct Sent {
    Part part;
    EncodedPayload payload;
    uint64_t bytes = 0;
    Time at;
    std::string waiting;  // for whom, if the owner said so
  };

  struct Waiter {
    std::shared_ptr<const bool> wanted;
    std::atomic<bool>* flag;
  };

  void connect();
  void sync();
  bool is_large(const Part& part) const;
  void put_in_queue(Part part);
  void pump();
  void tell_waiters();
  Result<EncodedPayload> encode_part(const Part& part, std::span<const FilterSpec> filters);
  void transmit(uint64_t seq, Sent& sent, bool outcome_only);
  void on_reply(const Frame& frame);
  void on_sync_reply(const Frame& frame);
  struct TableState {
    KeyCache keys;  // lists the owner has
    Traffic traffic;
  };
  TableState& table_state(const Part& part);
  uint64_t oldest_unanswered() const { return sent_.empty() ? next_seq_ : sent_.begin()->first; }

  const Options options_;
  Transport& transport_;
  Clock& clock_;
  Random& random_;

  LaneId lane_ = 0;
  bool open_ = false;
  bool local_ = false;         // the lane is, or shall be, through shared memory
  bool local_failed_ = false;  // it is on another machine
  uint64_t placed_ = 0;        // the reply to this arrives in its place; 0: none does
  bool synced_ = false;
  std::optional<bool> said_how_;  // that it is by shared memory, or not
  uint64_t sync_number_ = 0;
  uint64_t asked_before_ = 1;  // requests below this had been sent when the last question was asked
  Time next_connect_ = Time::never();
  Time next_sync_ = Time::never();  // ask what became of the requests
  Time sync_deadline_ = Time::never();
  Duration backoff_{};
  Duration retry_{};
  std::string connect_error_;

  Credit credit_;
  uint64_t next_seq_ = 1;
  std::deque<Part> queue_;         // not sent yet; the worker bounds it
  size_t passes_ = 0;              // parts that went before large ones since the last large one was sent
  std::map<uint64_t, Sent> sent_;  // not answered yet
  std::vector<Waiter> waiters_;    // for no large part in queue_
  uint64_t sent_bytes_ = 0;
  size_t sent_pulls_ = 0;
  uint64_t reply_bytes_ = 0;  // that are on their way to us
  uint32_t min_clock_ = 0;
  std::map<TableId, TableState> tables_;
  std::string fenced_;
  Error failure_{Code::kUnavailable, ""};

  Metrics& metrics_;
  Counter& resent_;
};

}  // namespace pscloud

#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/metrics.h"
#include "base/random.h"
#include "engine/filter/filter.h"
#include "engine/key_range.h"
#include "engine/member.h"
#include "engine/message.h"
#include "engine/sabotage.h"
#include "engine/server/clock_gate.h"
#include "engine/server/hot_keys.h"
#include "engine/server/job_board.h"
#include "engine/server/owned_table.h"
#include "engine/server/push_staleness.h"
#include "engine/server/request_stream.h"
#include "engine/traffic.h"
#include "net/transport.h"

namespace pscloud {

// Holds one part of every table and serves it to the workers. The unit of the protocol: a server process is one of
// these for each of its threads, each a member of the job by itself, so that nothing is shared between them.
// Plain state machine, touched by the loop thread only.
class ShardOwner final : public LaneHandler, private Member::Listener {
 public:
  struct Options {
    Member::Options member;
    uint64_t memory_max = uint64_t{8} << 30;         // of all tables, and of the key lists that are kept
    Credit credit;                                   // most that one worker may have unanswered here
    uint64_t memory_unanswered = uint64_t{1} << 30;  // of all workers: more workers, less credit for each
    uint64_t key_cache_bytes = uint64_t{64} << 20;   // for each worker and table
    Sabotage sabotage;
  };

  ShardOwner(Options options, const UpdaterCatalog& updaters, Transport& transport, Clock& clock, Random& random,
             Metrics& metrics);

  void start() {
    member_.start();
    schedule_wake();
  }
  void on_open(LaneId lane, const Peer& peer) override;
  void on_frame(LaneId lane, Frame frame) override;
  void on_close(LaneId lane, const Error& why) override;
  void on_wake() override;

  // The job is over for this owner.
  bool finished() const { return member_.left() || expelled_; }
  Result<> outcome() const;
  // Leaves the job on the way out of the process.
  void leave(const std::string& reason) { member_.leave(true, reason); }

  const Member& member() const { return member_; }
  std::string status_json() const;
  // For people: whom requests here wait for.
  std::vector<std::string> waiting_for() const;
  // Of all tables; those of the owners of a process are different ones.
  static constexpr size_t kHotKeysTold = 20;
  std::vector<HotKeys::HotKey> hot_keys() const;

  // For the simulator's checks.
  const ClockGate& gate() const { return gate_; }
  const OwnedTable* table(TableId id) const;
  uint64_t held_bytes(uint64_t session) const;
  bool holds(Key key) const { return owners_ > 0 && owner_of(key, owners_) == owner_; }
  Result<> peek(TableId table, Key key, std::span<float> out) const;

 private:
  struct Session {
    explicit Session(const NodeInfo& node, Credit limit) : info(node), stream(limit) {}
    NodeInfo info;
    RequestStream stream;
    LaneId lane = 0;
    bool clock_begun = false;       // has sent its first clock
    std::deque<Operation> waiting;  // accepted, but the gate is closed; in order
    uint64_t waiting_bytes = 0;
    std::map<uint64_t, Result<SharedBuffer>> answers;  // that may have to be given again: errors, and the board's
    std::map<TableId, KeyCache> key_caches;

    // Not without end for a worker that never says what it has heard; far more than one can have unanswered.
    void keep_answer(uint64_t seq, const Result<SharedBuffer>& answer) {
      answers.insert_or_assign(seq, answer);
      if (answers.size() <= kAnswersMax) return;
      const auto oldest = answers.begin();
      answers.erase(oldest->first == seq ? std::next(oldest) : oldest);
    }
    static constexpr size_t kAnswersMax = 4096;
  };

  struct HeldTable {
    std::unique_ptr<OwnedTable> rows;
    Traffic traffic;
    Gauge& keys;  // rows of this owner
    HotKeys hot;
  };

  // Member::Listener
  void on_view(const View& view) override;
  void on_barrier(uint64_t) override {}
  void on_expelled(const Error& why) override;

  void on_sync(LaneId lane, const FrameHeader& header);
  bool fence(LaneId lane, const FrameHeader& header);  // tells a worker that takes part no longer
  void on_request(LaneId lane, Frame frame);
  bool take_in(Session& session, const Frame& frame);  // false: not accepted, its key list is unknown
  void answer_again(Session& session, const Frame& frame);
  Result<SharedBuffer> create_table(const Frame& frame);
  Result<SharedBuffer> open_table(const Frame& frame);
  Result<SharedBuffer> scan_table(const Frame& frame) const;
  Result<SharedBuffer> set_rows(const Frame& frame);
  Result<> finish_clock(Session& session, const FrameHeader& header);
  void gate_operation(Session& session, Operation operation);
  void serve(Session& session, Operation& operation, bool repeated);
  void share_memory(OwnedTable& table) const;  // what the other tables leave it
  void make_room();                            // forgets key lists if they are too much beside the tables
  Result<EncodedPayload> pull_in_place(const Session& session, OwnedTable& table, const Operation& operation);
  void advance();

  // kNotFound, kInvalid or kCorrupt; `keys_unknown` is set if the key list must be sent.
  Result<Operation> read_operation(Session& session, const Frame& frame, bool& keys_unknown);
  void reply(Session& session, uint64_t seq, const Result<EncodedPayload>& outcome, uint32_t count = 0);
  bool reads(LaneId lane);  // else it was closed: its replies pile up here
  void send_waiting(Session& session, const Operation& operation);
  void send(LaneId lane, FrameType type, uint64_t session, uint64_t seq, SharedBuffer payload);
  Credit credit() const;
  uint64_t table_bytes() const;
  std::string holding_back(uint32_t needed) const;
  std::string name_of(uint64_t session) const;
  std::vector<uint64_t> sessions_by_rank() const;
  void schedule_wake();

  const Options options_;
  const UpdaterCatalog& updaters_;
  Transport& transport_;
  Clock& clock_;
  Random& random_;
  Metrics& metrics_;
  Member member_;

  uint32_t owner_ = 0;   // which part of the tables is ours
  uint32_t owners_ = 0;  // 0: not known yet
  std::map<uint64_t, Session> sessions_;
  std::map<uint64_t, std::pair<LaneId, FrameHeader>> early_syncs_;  // from workers that our view does not have yet
  std::map<TableId, HeldTable> tables_;
  uint64_t cached_key_bytes_ = 0;  // in the key caches of all sessions
  ClockGate gate_;
  JobBoard board_;
  PushStaleness staleness_;
  uint32_t served_minimum_ = 0;
  bool expelled_ = false;
  Error failure_{Code::kUnavailable, ""};

  Counter& requests_;
  Counter& repeated_;
  Counter& pushed_rows_;
  Counter& pulled_rows_;
};

}  // namespace pscloud

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "pscloud/error.h"
#include "pscloud/table.h"
#include "pscloud/types.h"
#include "pscloud/work.h"

namespace pscloud {

// Payloads of the frames between nodes, byte by byte in docs/wire-format.md. decode() trusts nothing: any bytes
// give either a message within these limits or kCorrupt.
inline constexpr size_t kNameBytesMax = 200;
inline constexpr size_t kTextBytesMax = 4096;
inline constexpr size_t kNodesMax = 16384;

enum class NodeState : uint8_t { kLive = 1, kDone = 2, kDead = 3 };

// One member of the job. A server process has one for each of its owners.
struct NodeInfo {
  uint64_t session = 0;  // drawn at random by each incarnation
  uint64_t process = 0;  // the same for all owners of one server process
  Role role = Role::kWorker;
  NodeState state = NodeState::kLive;
  uint32_t rank = 0;   // servers: of the process
  uint32_t owner = 0;  // servers: which owner of the process, of `owners`
  uint32_t owners = 1;
  std::string address;  // servers: where this owner listens
  std::string local;    // and where for processes of its own machine; empty: nowhere

  // "worker 1", "server 0", "server 0.1" for the second owner of several.
  std::string name() const;
  bool operator==(const NodeInfo&) const = default;
};

enum class Phase : uint8_t {
  kForming = 0,  // not all needed nodes are there
  kRunning = 1,
  kStopping = 2,  // the workers are done: servers leave
  kFailed = 3,    // `reason` says why: everybody leaves
};

// Who takes part, as the scheduler decided it. A higher version replaces a lower one. Order of `nodes`: scheduler
// order; the owners among them, in this order, hold the key ranges.
struct View {
  uint64_t version = 0;
  Phase phase = Phase::kForming;
  std::string reason;
  std::vector<NodeInfo> nodes;

  const NodeInfo* find(uint64_t session) const;
  bool operator==(const View&) const = default;
};

struct JoinMessage {
  std::string job;
  NodeInfo self;          // rank is a wish, 0xffffffff for none
  uint64_t barriers = 0;  // how many this worker has passed
  View view;              // the last one it had; version 0: it is new. A restarted scheduler learns from it.
};

struct HeartbeatMessage {
  uint64_t view_version = 0;
  std::string waiting_for;  // what this node waits for now; empty: nothing
};

struct LeaveMessage {
  bool failed = false;
  std::string reason;
};

// Lists of names for people: who is missing, whom a request waits for. Also kRefused and kFenced: why.
struct TextMessage {
  std::string text;
};

struct SyncReplyMessage {
  uint64_t accepted = 0;   // every request up to this has been taken in
  uint32_t min_clock = 0;  // of all workers, as this owner knows it
  uint64_t credit = 0;
  std::vector<uint64_t> waiting;  // accepted but still waiting for others
};

// An Error as it travels in a reply with kFlagError.
struct ErrorMessage {
  Code code = Code::kInvalid;
  std::string text;
};

// Work for all workers, under a name.
struct OfferWorkMessage {
  std::string pool;
  std::vector<std::string> items;
  SlowWork slow = SlowWork::kRepeat;
  WorkDeal deal = WorkDeal::kFirstCome;
};

// An item for the worker that asked, or none yet, or none any more, or the number of a pause.
struct TakenMessage {
  enum class State : uint8_t { kGiven = 0, kWait = 1, kEnd = 2, kPause = 3 };
  State state = State::kWait;
  WorkItem item;
  std::string waiting_for;
};

// An item is done. What is to be added goes to the tally of the pool's name, if it counts; then the tally that it
// `forgets` is gone.
struct FinishWorkMessage {
  std::string pool;
  uint64_t number = 0;
  std::vector<Addend> addends;
  std::string forgets = {};  // none if empty
};

// Begins a pause, or ends the one of that number.
struct PauseWorkMessage {
  std::string pool;
  uint64_t number = 0;
  bool begins = false;
};

struct YesNoMessage {
  bool yes = false;
};

// Adds to a tally, then asks for `count` of its places.
struct TallyMessage {
  static constexpr uint32_t kPlacesMax = 1 << 24;
  std::string tally;
  std::vector<Addend> addends;
  uint32_t first = 0;
  uint32_t count = 0;
};

struct TallyReplyMessage {
  std::vector<double> sums;
};

// Asks for rows by their numbers at one owner, which decides how many it brings.
struct ScanMessage {
  uint64_t first = 0;
  ScanKind kind = ScanKind::kCount;
};

// Puts rows whole in place of what is there: values and state as a scan of kState brings them, or values alone (kAll).
struct SetRowsMessage {
  ScanKind kind = ScanKind::kAll;
  std::vector<Key> keys;
  std::vector<float> floats;
};

SharedBuffer encode(const JoinMessage& message);
SharedBuffer encode(const View& message);
SharedBuffer encode(const HeartbeatMessage& message);
SharedBuffer encode(const LeaveMessage& message);
SharedBuffer encode(const TextMessage& message);
SharedBuffer encode(const SyncReplyMessage& message);
SharedBuffer encode(const ErrorMessage& message);
SharedBuffer encode(const TableSpec& spec);
SharedBuffer encode(const OfferWorkMessage& message);
SharedBuffer encode(const TakenMessage& message);
SharedBuffer encode(const FinishWorkMessage& message);
SharedBuffer encode(const PauseWorkMessage& message);
SharedBuffer encode(const YesNoMessage& message);
SharedBuffer encode(const TallyMessage& message);
SharedBuffer encode(const TallyReplyMessage& message);
SharedBuffer encode(const ScanMessage& message);
SharedBuffer encode(const ScannedRows& rows);
SharedBuffer encode(const SetRowsMessage& message);

template <class Message>
Result<Message> decode(Bytes bytes);
template <>
Result<JoinMessage> decode(Bytes bytes);
template <>
Result<View> decode(Bytes bytes);
template <>
Result<HeartbeatMessage> decode(Bytes bytes);
template <>
Result<LeaveMessage> decode(Bytes bytes);
template <>
Result<TextMessage> decode(Bytes bytes);
template <>
Result<SyncReplyMessage> decode(Bytes bytes);
template <>
Result<ErrorMessage> decode(Bytes bytes);
template <>
Result<TableSpec> decode(Bytes bytes);
template <>
Result<OfferWorkMessage> decode(Bytes bytes);
template <>
Result<TakenMessage> decode(Bytes bytes);
template <>
Result<FinishWorkMessage> decode(Bytes bytes);
template <>
Result<PauseWorkMessage> decode(Bytes bytes);
template <>
Result<YesNoMessage> decode(Bytes bytes);
template <>
Result<TallyMessage> decode(Bytes bytes);
template <>
Result<TallyReplyMessage> decode(Bytes bytes);
template <>
Result<ScanMessage> decode(Bytes bytes);
template <>
Result<ScannedRows> decode(Bytes bytes);
template <>
Result<SetRowsMessage> decode(Bytes bytes);

// Credit, as replies carry it: what a worker may have unanswered at one owner.
struct Credit {
  uint32_t requests = 64;
  uint32_t bytes = 16u << 20;

  uint64_t packed() const { return uint64_t{requests} << 32 | bytes; }
  static Credit unpack(uint64_t packed) { return {static_cast<uint32_t>(packed >> 32), static_cast<uint32_t>(packed)}; }
  bool operator==(const Credit&) const = default;
};

}  // namespace pscloud

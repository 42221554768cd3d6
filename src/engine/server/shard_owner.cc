#include "engine/server/shard_owner.h"

#include <algorithm>

#include "base/check.h"
#include "base/log.h"

namespace pscloud {

namespace {
constexpr size_t kEarlySyncsMax = 4096;
// A worker that asks but does not read would make its replies pile up here.
constexpr uint64_t kUnsentBytesMax = uint64_t{256} << 20;
constexpr uint32_t kCreditBytesMin = 256u << 10;

// A message as the payload of a reply.
Result<EncodedPayload> message(Result<SharedBuffer> text) {
  return EncodedPayload{.head = TRY(std::move(text)), .values = nullptr};
}
}  // namespace

ShardOwner::ShardOwner(Options options, const UpdaterCatalog& updaters, Transport& transport, Clock& clock,
                       Random& random, Metrics& metrics)
    : options_(std::move(options)),
      updaters_(updaters),
      transport_(transport),
      clock_(clock),
      random_(random),
      metrics_(metrics),
      member_(options_.member, transport, clock, random, *this),
      board_([this](uint64_t session) { return name_of(session); }, [this] { return sessions_by_rank(); }),
      staleness_(metrics),
      requests_(metrics.counter("pscloud_requests_total", "requests taken in")),
      repeated_(metrics.counter("pscloud_repeated_requests_total", "requests that had been taken in before")),
      pushed_rows_(metrics.counter("pscloud_pushed_rows_total", "rows updated by pushes")),
      pulled_rows_(metrics.counter("pscloud_pulled_rows_total", "rows sent to workers")) {}

void ShardOwner::on_open(LaneId lane, const Peer& peer) {
  if (member_.owns(lane)) {
    member_.on_open(lane);
  } else if (peer.role && *peer.role != Role::kWorker) {
    log_warning("{} at {} is no worker: refused", role_name(*peer.role), peer.address);
    transport_.close(lane);
  }
  schedule_wake();
}

void ShardOwner::on_close(LaneId lane, const Error& why) {
  if (member_.owns(lane)) member_.on_close(lane, why);
  std::erase_if(early_syncs_, [&](const auto& sync) { return sync.second.first == lane; });
  for (auto& [id, session] : sessions_) {
    if (session.lane == lane) session.lane = 0;  // the worker will be back, or the scheduler will say that it is dead
  }
  schedule_wake();
}

void ShardOwner::on_frame(LaneId lane, Frame frame) {
  if (member_.owns(lane)) {
    member_.on_frame(lane, frame);
  } else if (!reads(lane)) {
    return;  // it asks, but does not read: nothing more is done for it
  } else if (frame.header.type == FrameType::kSync) {
    on_sync(lane, frame.header);
  } else if (is_request(frame.header.type)) {
    on_request(lane, std::move(frame));
  }
  schedule_wake();
}

void ShardOwner::on_wake() {
  member_.on_wake();
  schedule_wake();
}

void ShardOwner::schedule_wake() { transport_.wake_at(member_.next_wake()); }

// The workers of the view, and nobody else, are served; each counts for the clocks from the moment it is there.
void ShardOwner::on_view(const View& view) {
  if (owners_ == 0) {
    for (const NodeInfo& node : view.nodes) {
      if (node.role != Role::kServer) continue;
      if (node.session == member_.session()) owner_ = owners_;
      ++owners_;
    }
  }
  std::erase_if(sessions_, [&](auto& entry) {
    const NodeInfo* node = view.find(entry.first);
    if (node != nullptr && node->state == NodeState::kLive) return false;
    gate_.remove(entry.first);
    board_.forget(entry.first);
    for (const auto& [table, cache] : entry.second.key_caches) cached_key_bytes_ -= cache.bytes();
    staleness_.forget(entry.first);
    return true;
  });
  for (const NodeInfo& node : view.nodes) {
    if (node.role != Role::kWorker || node.state != NodeState::kLive) continue;
    sessions_.try_emplace(node.session, node, options_.credit);
    gate_.add(node.session);
    if (const auto early = early_syncs_.extract(node.session)) on_sync(early.mapped().first, early.mapped().second);
  }
  advance();
  if (view.phase == Phase::kFailed) failure_ = job_failed("{}", view.reason);
  if (view.phase != Phase::kRunning) member_.leave(false, "");
}

void ShardOwner::on_expelled(const Error& why) {
  expelled_ = true;
  failure_ = why;
}

void ShardOwner::on_sync(LaneId lane, const FrameHeader& header) {
  if (header.extra != member_.session()) {
    log_debug("a worker looks here for a server that had this address before");
    transport_.close(lane);
    return;
  }
  const auto found = sessions_.find(header.session);
  if (found == sessions_.end()) {
    // Our view may be behind the worker's.
    if (!fence(lane, header) && early_syncs_.size() < kEarlySyncsMax) early_syncs_[header.session] = {lane, header};
    return;
  }
  Session& session = found->second;
  session.lane = lane;
  transport_.trust(lane);
  SyncReplyMessage answer;
  answer.accepted = session.stream.accepted();
  answer.min_clock = gate_.minimum();
  answer.credit = credit().packed();
  for (const Operation& operation : session.waiting) answer.waiting.push_back(operation.seq);
  send(lane, FrameType::kSyncReply, header.session, header.seq, encode(answer));
  for (const Operation& operation : session.waiting) send_waiting(session, operation);
}

bool ShardOwner::fence(LaneId lane, const FrameHeader& header) {
  const NodeInfo* node = member_.view().find(header.session);
  if (node == nullptr || node->role != Role::kWorker) return false;
  const std::string text = fmt::format("{} was declared dead or has left", node->name());
  send(lane, FrameType::kFenced, header.session, header.seq, encode(TextMessage{text}));
  return true;
}

void ShardOwner::on_request(LaneId lane, Frame frame) {
  const auto found = sessions_.find(frame.header.session);
  if (found == sessions_.end()) {
    fence(lane, frame.header);
    return;
  }
  Session& session = found->second;
  if (session.lane != lane) return;  // an old lane, or one that has not asked to be served
  session.answers.erase(session.answers.begin(), session.answers.lower_bound(frame.header.ack));

  if (frame.header.flags & kFlagOutcomeOnly) {
    if (frame.header.seq <= session.stream.accepted()) answer_again(session, frame);
    return;
  }
  switch (session.stream.offer(frame, session.waiting_bytes, options_.sabotage.no_bound)) {
    case RequestStream::Verdict::kRepeated: answer_again(session, frame); return;
    case RequestStream::Verdict::kHeld:
    case RequestStream::Verdict::kDropped: return;
    case RequestStream::Verdict::kNext: break;
  }
  if (!take_in(session, frame)) return;
  while (auto next = session.stream.take_next()) {
    if (!take_in(session, *next)) return;
  }
}

// Does one request, the next in its stream, or makes it wait for the clocks. Its effect and its acceptance are one
// step.
bool ShardOwner::take_in(Session& session, const Frame& frame) {
  const FrameHeader& header = frame.header;
  const auto accept = [&] {
    session.stream.accept();
    requests_.add();
  };
  switch (header.type) {
    case FrameType::kCreateTable:
      accept();
      reply(session, header.seq, message(create_table(frame)));
      return true;
    case FrameType::kOpenTable:
      accept();
      reply(session, header.seq, message(open_table(frame)));
      return true;
    case FrameType::kScan:
      accept();
      reply(session, header.seq, message(scan_table(frame)));
      return true;
    case FrameType::kSetRows:
      accept();
      reply(session, header.seq, message(set_rows(frame)));
      return true;
    case FrameType::kOfferWork:
    case FrameType::kTakeWork:
    case FrameType::kFinishWork:
    case FrameType::kPauseWork:
    case FrameType::kTally: {
      accept();
      const Result<SharedBuffer> answer = board_.serve(frame, clock_.now());
      if (!options_.sabotage.no_memo) session.keep_answer(header.seq, answer);
      reply(session, header.seq, message(answer));
      return true;
    }
    case FrameType::kClock: {
      accept();
      if (auto finished = finish_clock(session, header); !finished) reply(session, header.seq, finished.error());
      return true;
    }
    default: break;
  }
  bool keys_unknown = false;
  auto operation = read_operation(session, frame, keys_unknown);
  if (keys_unknown) {
    send(session.lane, FrameType::kKeysUnknown, header.session, header.seq, nullptr);
    return false;
  }
  accept();
  if (!operation) {
    reply(session, header.seq, operation.error());
  } else {
    gate_operation(session, std::move(*operation));
  }
  return true;
}

// It was done before; only the answer may have been lost. Reads are simply done again.
void ShardOwner::answer_again(Session& session, const Frame& frame) {
  const FrameHeader& header = frame.header;
  repeated_.add();
  const auto waits = std::ranges::find(session.waiting, header.seq, &Operation::seq);
  if (waits != session.waiting.end()) return send_waiting(session, *waits);
  if (const auto kept = session.answers.find(header.seq); kept != session.answers.end()) {
    return reply(session, header.seq, message(Result<SharedBuffer>(kept->second)));
  }
  if (header.type == FrameType::kOpenTable) return reply(session, header.seq, message(open_table(frame)));
  if (header.type == FrameType::kScan) return reply(session, header.seq, message(scan_table(frame)));
  const bool outcome_only = (header.flags & kFlagOutcomeOnly) != 0;
  if (outcome_only || !(is_read(header.type) || (options_.sabotage.no_dedup && header.type == FrameType::kPush))) {
    return reply(session, header.seq, EncodedPayload{});
  }
  bool keys_unknown = false;
  auto operation = read_operation(session, frame, keys_unknown);
  if (keys_unknown) {
    send(session.lane, FrameType::kKeysUnknown, header.session, header.seq, nullptr);
  } else if (!operation) {
    reply(session, header.seq, operation.error());
  } else {
    serve(session, *operation, !options_.sabotage.no_dedup);
  }
}

Result<> ShardOwner::finish_clock(Session& session, const FrameHeader& header) {
  const uint64_t id = session.info.session;
  const uint32_t now = gate_.clock(id);
  // Only its first clock may jump: one that came late begins where the others are.
  if (session.clock_begun ? header.clock != now + 1 : header.clock < now) {
    return invalid("clock {} does not follow clock {}", header.clock, now);
  }
  if (header.clock > ClockGate::kLast) return invalid("clock {}: the last is {}", header.clock, ClockGate::kLast);
  session.clock_begun = true;
  Operation operation;
  operation.type = FrameType::kClock;
  operation.session = id;
  operation.seq = header.seq;
  operation.clock = header.clock;
  operation.bytes = kFrameHeaderBytes;
  for (const auto& [table_id, table] : tables_) {
    operation.needed = std::max(operation.needed, ClockGate::needed(table.rows->spec().consistency, header.clock));
  }
  gate_.finish(id, header.clock);
  advance();  // what others wait for comes first
  gate_operation(session, std::move(operation));
  return {};
}

void ShardOwner::gate_operation(Session& session, Operation operation) {
  if (operation.needed <= gate_.minimum() || options_.sabotage.no_gate) return serve(session, operation, false);
  send_waiting(session, operation);
  operation.values.own();  // a worker that gives up may use its memory again
  session.waiting_bytes += operation.bytes;
  session.waiting.push_back(std::move(operation));
}

// Lets through what the clocks allow by now, step by step, so that each read sees the very clock it asked for.
void ShardOwner::advance() {
  const uint32_t minimum = gate_.minimum();
  while (true) {
    uint32_t step = UINT32_MAX;
    for (const auto& [id, table] : tables_) step = std::min(step, table.rows->next_settlement());
    for (const auto& [id, session] : sessions_) {
      for (const Operation& operation : session.waiting) step = std::min(step, operation.needed);
    }
    if (step > minimum) break;
    step = std::max(step, served_minimum_);
    for (auto& [id, table] : tables_) table.rows->settle(step);
    for (auto& [id, session] : sessions_) {
      std::deque<Operation> waiting = std::exchange(session.waiting, {});
      session.waiting_bytes = 0;
      for (Operation& operation : waiting) {
        if (operation.needed <= step) {
          serve(session, operation, false);
        } else {
          session.waiting_bytes += operation.bytes;
          session.waiting.push_back(std::move(operation));
        }
      }
    }
    served_minimum_ = step;
  }
}

void ShardOwner::reply(Session& session, uint64_t seq, const Result<EncodedPayload>& outcome, uint32_t count) {
  Frame frame;
  frame.header.type = FrameType::kReply;
  frame.header.session = session.info.session;
  frame.header.seq = seq;
  frame.header.extra = credit().packed();
  frame.header.count = count;
  frame.header.clock = gate_.minimum();
  if (outcome) {
    outcome->put_in(frame);
  } else {
    const ErrorMessage error{outcome.error().code, outcome.error().message};
    session.keep_answer(seq, outcome.error());
    frame.header.flags |= kFlagError;
    frame.payload = encode(error);
  }
  if (session.lane == 0 || !reads(session.lane)) return;  // it will ask
  transport_.send(session.lane, std::move(frame));
}

bool ShardOwner::reads(LaneId lane) {
  if (transport_.unsent_bytes(lane) <= kUnsentBytesMax) return true;
  log_warning("a worker does not read its replies: its connection is closed");
  transport_.close(lane);
  on_close(lane, unavailable("it does not read"));
  return false;
}

void ShardOwner::send_waiting(Session& session, const Operation& operation) {
  if (session.lane == 0) return;
  const std::string text = fmt::format("{} to finish clock {}", holding_back(operation.needed), operation.needed - 1);
  send(session.lane, FrameType::kWaiting, session.info.session, operation.seq, encode(TextMessage{text}));
}

std::string ShardOwner::holding_back(uint32_t needed) const {
  return gate_.holding_back(needed, [&](uint64_t id) { return name_of(id); });
}

std::string ShardOwner::name_of(uint64_t session) const {
  const auto found = sessions_.find(session);
  return found == sessions_.end() ? std::string("a worker that left") : found->second.info.name();
}

std::vector<uint64_t> ShardOwner::sessions_by_rank() const {
  std::vector<uint64_t> ids;
  for (const auto& [id, session] : sessions_) ids.push_back(id);
  std::ranges::sort(ids, {}, [&](uint64_t id) { return sessions_.at(id).info.rank; });
  return ids;
}

void ShardOwner::send(LaneId lane, FrameType type, uint64_t session, uint64_t seq, SharedBuffer payload) {
  if (lane == 0) return;
  Frame frame;
  frame.header.type = type;
  frame.header.session = session;
  frame.header.seq = seq;
  frame.payload = std::move(payload);
  transport_.send(lane, std::move(frame));
}

// What all workers together may have unanswered is bounded: each gets its share.
Credit ShardOwner::credit() const {
  const uint64_t share = options_.memory_unanswered / std::max<size_t>(1, sessions_.size());
  Credit credit = options_.credit;
  credit.bytes = static_cast<uint32_t>(std::min<uint64_t>(credit.bytes, std::max<uint64_t>(share, kCreditBytesMin)));
  return credit;
}

uint64_t ShardOwner::table_bytes() const {
  uint64_t bytes = 0;
  for (const auto& [id, table] : tables_) bytes += table.rows->bytes();
  return bytes;
}

Result<> ShardOwner::outcome() const {
  if (!failure_.message.empty()) return failure_;
  return {};
}

const OwnedTable* ShardOwner::table(TableId id) const {
  const auto found = tables_.find(id);
  return found == tables_.end() ? nullptr : found->second.rows.get();
}

uint64_t ShardOwner::held_bytes(uint64_t session) const {
  const auto found = sessions_.find(session);
  return found == sessions_.end() ? 0 : found->second.stream.held_bytes() + found->second.waiting_bytes;
}

Result<> ShardOwner::peek(TableId id, Key key, std::span<float> out) const {
  const OwnedTable* found = table(id);
  if (found == nullptr) return not_found("no table {}", id);
  Operation operation;
  operation.keys = std::vector<Key>(1, key);
  return found->pull(operation, out);
}

}  // namespace pscloud

// An owner's tables: how they are made, and what is done with their rows.

#include <algorithm>

#include "base/check.h"
#include "engine/server/shard_owner.h"

namespace pscloud {

namespace {
// To move more would hold up everybody, and its versions fit into a frame.
constexpr uint64_t kPublishBytesMax = uint64_t{2} << 30;
constexpr size_t kBorrowBytesMin = 64 << 10;  // less is better sent together with other replies
constexpr uint64_t kScanRowsMax = 1 << 20;
constexpr uint64_t kScanBytesMax = 1 << 20;
}  // namespace

Result<SharedBuffer> ShardOwner::create_table(const Frame& frame) {
  TableSpec spec = TRY(decode<TableSpec>(frame.bytes()));
  const TableId id = table_id(spec.name);
  if (const auto found = tables_.find(id); found != tables_.end()) {
    const TableSpec& there = found->second.rows->spec();
    if (there == spec) return SharedBuffer();
    if (there.name != spec.name) {
      return invalid("tables '{}' and '{}' cannot both exist: their names have the same hash; rename one", there.name,
                     spec.name);
    }
    return invalid("table '{}' exists with another spec; open it, or give the new one another name", spec.name);
  }
  const uint64_t used = table_bytes();
  const uint64_t left = options_.memory_max > used ? options_.memory_max - used : 0;
  auto rows = TRY(OwnedTable::make(spec, updaters_, owner_, owners_, left));
  Gauge& keys = metrics_.gauge("pscloud_keys", "rows that are held",
                               {{"table", spec.name}, {"owner", std::to_string(options_.member.self.owner)}});
  keys.set(static_cast<double>(rows->rows()));
  // The session was drawn by chance: that is enough for a sample.
  tables_.emplace(id, HeldTable{std::move(rows), {metrics_, spec.name}, keys, HotKeys(member_.session() ^ id)});
  return SharedBuffer();
}

Result<SharedBuffer> ShardOwner::open_table(const Frame& frame) {
  const TextMessage name = TRY(decode<TextMessage>(frame.bytes()));
  const auto found = tables_.find(table_id(name.text));
  if (found != tables_.end() && found->second.rows->spec().name == name.text) return encode(found->second.rows->spec());
  std::string known;
  for (const auto& [id, table] : tables_) known += (known.empty() ? "" : ", ") + table.rows->spec().name;
  return not_found("no table '{}'; there {}", name.text, known.empty() ? "is none yet" : "are: " + known);
}

// What would hold up others for long is cut.
Result<SharedBuffer> ShardOwner::scan_table(const Frame& frame) const {
  const ScanMessage message = TRY(decode<ScanMessage>(frame.bytes()));
  const OwnedTable* found = table(frame.header.table);
  if (found == nullptr) return not_found("no table with id {} on this server", frame.header.table);
  const uint64_t row_bytes = sizeof(Key) + found->floats(message.kind) * sizeof(float);
  const uint64_t most = std::min(kScanRowsMax, kScanBytesMax / row_bytes + 1);
  return encode(found->scan(message.first, most, message.kind));
}

Result<SharedBuffer> ShardOwner::set_rows(const Frame& frame) {
  const SetRowsMessage message = TRY(decode<SetRowsMessage>(frame.bytes()));
  const auto found = tables_.find(frame.header.table);
  if (found == tables_.end()) return not_found("no table with id {} on this server", frame.header.table);
  OwnedTable& table = *found->second.rows;
  share_memory(table);
  TRY(table.set(message.keys, message.floats, message.kind));
  pushed_rows_.add(message.keys.size());
  found->second.keys.set(static_cast<double>(table.rows()));
  return SharedBuffer();
}

void ShardOwner::share_memory(OwnedTable& table) const {
  const uint64_t others = table_bytes() - table.bytes();
  table.limit_bytes(options_.memory_max - std::min(options_.memory_max, others));
}

// Rows cannot be had again, lists can: workers are told by kKeysUnknown, and send them.
void ShardOwner::make_room() {
  if (cached_key_bytes_ == 0 || table_bytes() + cached_key_bytes_ <= options_.memory_max) return;
  for (auto& [id, session] : sessions_) session.key_caches.clear();
  cached_key_bytes_ = 0;
}

Result<Operation> ShardOwner::read_operation(Session& session, const Frame& frame, bool& keys_unknown) {
  const FrameHeader& header = frame.header;
  const auto found = tables_.find(header.table);
  if (found == tables_.end()) {
    return not_found("no table with id {} on this server: create or open it before use", header.table);
  }
  const TableSpec& spec = found->second.rows->spec();
  Operation operation;
  operation.type = header.type;
  operation.session = header.session;
  operation.rank = session.info.rank;
  operation.seq = header.seq;
  operation.table = header.table;
  operation.clock = gate_.clock(header.session);
  operation.needed = ClockGate::needed(spec.consistency, operation.clock);
  operation.range = (header.flags & kFlagRange) != 0;
  operation.in_place = (header.flags & kFlagInPlace) != 0;
  if (operation.in_place && !(operation.range && operation.type == FrameType::kPull)) {
    return invalid("only rows of a dense table that are pulled by their numbers can stay in place");
  }
  operation.first = header.extra;
  operation.count = header.count;
  if (uint64_t{header.count} * spec.width * sizeof(float) > kPayloadBytesMax - 1024) {
    return invalid("{} rows of width {} are more than one message holds", header.count, spec.width);
  }
  make_room();
  KeyCache& cache = session.key_caches.try_emplace(header.table, options_.key_cache_bytes).first->second;
  const uint64_t cached = cache.bytes();
  auto payload =
      decode_payload(frame, header.count, spec.width, !operation.range, operation.pushes(), {&random_, &cache});
  cached_key_bytes_ += cache.bytes() - cached;  // or less, modulo 2^64
  if (!payload) return payload.error();
  if (payload->keys_unknown) {
    keys_unknown = true;
    return operation;
  }
  operation.keys = std::move(payload->keys);
  operation.values = std::move(payload->values);
  const uint64_t plain_bytes = operation.keys.size() * sizeof(Key) + operation.values.size() * sizeof(float);
  operation.bytes = kFrameHeaderBytes + plain_bytes;
  found->second.traffic.push.add(plain_bytes, frame.payload_size());
  found->second.hot.take({operation.keys.data(), operation.keys.size()});
  return operation;
}

void ShardOwner::serve(Session& session, Operation& operation, bool repeated) {
  if (operation.type == FrameType::kClock) return reply(session, operation.seq, EncodedPayload{});
  const HeldTable& held = tables_.at(operation.table);
  OwnedTable& table = *held.rows;
  if (table.spec().consistency.kind == Consistency::Kind::kAsync) {
    if (operation.pushes() && !repeated) staleness_.on_push(operation.table, operation.session, clock_.now());
    if (operation.pulls()) staleness_.on_pull(operation.table, operation.session);
  }
  if (operation.in_place) return reply(session, operation.seq, pull_in_place(session, table, operation));
  const uint32_t count = operation.count;
  const uint64_t seq = operation.seq;  // a push to a bsp table keeps the operation
  const uint64_t first = operation.first;
  const bool pulls = operation.pulls();
  const bool pushes = operation.pushes() && !repeated;
  const size_t bytes = pulls ? size_t{count} * table.spec().width * sizeof(float) : 0;
  // The network sends from the table itself; shared memory takes values best while they are made.
  const bool borrow = pulls && operation.range && bytes >= kBorrowBytesMin && table.spec().pull_filters.empty() &&
                      transport_.borrows(session.lane);
  Buffer buffer;
  if (pulls && !borrow) buffer = transport_.allocate(session.lane, bytes);
  const std::span<float> values(reinterpret_cast<float*>(buffer.data()), buffer.size() / sizeof(float));
  const auto apply = [&]() -> Result<> {
    if (pulls) pulled_rows_.add(count);
    if (!pushes) return borrow ? Result<>() : table.pull(operation, values);
    pushed_rows_.add(count);
    share_memory(table);
    return pulls && !borrow ? table.push_pull(operation, values) : table.push(operation);
  };
  const auto outcome = [&]() -> Result<EncodedPayload> {
    if (pulls || pushes) TRY(apply());
    if (!pulls) return EncodedPayload{};
    if (borrow) {
      held.traffic.pull.add(bytes, bytes);
      return EncodedPayload{.head = nullptr, .values = TRY(table.borrow(first, count)), .plain = true};
    }
    const Floats floats(std::make_shared<const Buffer>(std::move(buffer)));
    auto encoded = encode_payload(table.spec().pull_filters, {}, floats, count, {&random_, nullptr});
    // A value that a filter cannot carry still has to reach the worker.
    if (!encoded) encoded = encode_payload({}, {}, floats, count, {&random_, nullptr});
    held.traffic.pull.add(bytes, encoded->size());
    return encoded;
  };
  const auto answer = outcome();
  if (pushes) held.keys.set(static_cast<double>(table.rows()));
  reply(session, seq, answer, pulls ? count : 0);
}

// Nothing is copied: the worker reads the table itself.
Result<EncodedPayload> ShardOwner::pull_in_place(const Session& session, OwnedTable& table,
                                                 const Operation& operation) {
  if (!transport_.shares_memory(session.lane)) return unavailable("this worker is not on the machine of the server");
  if (!table.spec().pull_filters.empty()) return invalid("table '{}' has filters for pulls", table.spec().name);
  if (table.bytes() > kPublishBytesMax) return unavailable("table '{}' is too large to be moved", table.spec().name);
  pulled_rows_.add(operation.count);
  const auto lend = [this](size_t size) { return transport_.lend(size); };
  return EncodedPayload{.head = nullptr, .values = TRY(table.pull_in_place(operation, lend)), .in_place = true};
}

}  // namespace pscloud

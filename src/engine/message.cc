#include "engine/message.h"

#include <algorithm>

#include "base/check.h"
#include "engine/message_fields.h"

namespace pscloud {
namespace {

constexpr size_t kNodeBytesMin = 34;  // with an empty address

// Errors travel by these numbers.
static_assert(static_cast<int>(Code::kInvalid) == 0 && static_cast<int>(Code::kNotFound) == 1 &&
              static_cast<int>(Code::kUnavailable) == 2 && static_cast<int>(Code::kTimeout) == 3 &&
              static_cast<int>(Code::kCorrupt) == 4 && static_cast<int>(Code::kFailed) == 5);

void put_node(ByteWriter& writer, const NodeInfo& node) {
  writer.put(node.session);
  writer.put(node.process);
  writer.put(node.role);
  writer.put(node.state);
  writer.put(node.rank);
  writer.put(node.owner);
  writer.put(node.owners);
  writer.put_text(node.address);
  writer.put_text(node.local);
}

NodeInfo get_node(ByteReader& reader, bool& known) {
  NodeInfo node;
  node.session = reader.get<uint64_t>();
  node.process = reader.get<uint64_t>();
  node.role = get_enum(reader, Role::kScheduler, Role::kWorker, known);
  node.state = get_enum(reader, NodeState::kLive, NodeState::kDead, known);
  node.rank = reader.get<uint32_t>();
  node.owner = reader.get<uint32_t>();
  node.owners = reader.get<uint32_t>();
  node.address = reader.get_text(kNameBytesMax);
  node.local = reader.get_text(kNameBytesMax);
  return node;
}

void put_view(ByteWriter& writer, const View& view) {
  CHECK(view.nodes.size() <= kNodesMax, "a view of {} nodes", view.nodes.size());
  writer.put(view.version);
  writer.put(view.phase);
  put_cut(writer, view.reason);
  writer.put(static_cast<uint32_t>(view.nodes.size()));
  for (const NodeInfo& node : view.nodes) put_node(writer, node);
}

View get_view(ByteReader& reader, bool& known) {
  View view;
  view.version = reader.get<uint64_t>();
  view.phase = get_enum(reader, Phase::kForming, Phase::kFailed, known);
  view.reason = reader.get_text(kTextBytesMax);
  const size_t count = reader.get_count(kNodeBytesMin);
  if (count > kNodesMax) {
    known = false;
    return view;
  }
  view.nodes.reserve(count);
  for (size_t i = 0; i < count; ++i) view.nodes.push_back(get_node(reader, known));
  return view;
}

}  // namespace

std::string NodeInfo::name() const {
  if (role == Role::kScheduler) return "scheduler";
  if (role == Role::kServer && owners > 1) return fmt::format("server {}.{}", rank, owner);
  return fmt::format("{} {}", role_name(role), rank);
}

const NodeInfo* View::find(uint64_t session) const {
  const auto found = std::find_if(nodes.begin(), nodes.end(), [&](const NodeInfo& n) { return n.session == session; });
  return found == nodes.end() ? nullptr : &*found;
}

SharedBuffer encode(const JoinMessage& message) {
  ByteWriter writer;
  writer.put_text(message.job);
  put_node(writer, message.self);
  writer.put(message.barriers);
  put_view(writer, message.view);
  return writer.share();
}

template <>
Result<JoinMessage> decode(Bytes bytes) {
  ByteReader reader(bytes);
  bool known = true;
  JoinMessage message;
  message.job = reader.get_text(kNameBytesMax);
  message.self = get_node(reader, known);
  message.barriers = reader.get<uint64_t>();
  message.view = get_view(reader, known);
  TRY(finish(reader, known, "a join message"));
  return message;
}

SharedBuffer encode(const View& message) {
  ByteWriter writer;
  put_view(writer, message);
  return writer.share();
}

template <>
Result<View> decode(Bytes bytes) {
  ByteReader reader(bytes);
  bool known = true;
  View view = get_view(reader, known);
  TRY(finish(reader, known, "a view"));
  return view;
}

SharedBuffer encode(const HeartbeatMessage& message) {
  ByteWriter writer;
  writer.put(message.view_version);
  put_cut(writer, message.waiting_for);
  return writer.share();
}

template <>
Result<HeartbeatMessage> decode(Bytes bytes) {
  ByteReader reader(bytes);
  HeartbeatMessage message;
  message.view_version = reader.get<uint64_t>();
  message.waiting_for = reader.get_text(kTextBytesMax);
  TRY(reader.finish("a heartbeat"));
  return message;
}

SharedBuffer encode(const LeaveMessage& message) {
  ByteWriter writer;
  writer.put(static_cast<uint8_t>(message.failed));
  put_cut(writer, message.reason);
  return writer.share();
}

template <>
Result<LeaveMessage> decode(Bytes bytes) {
  ByteReader reader(bytes);
  bool known = true;
  LeaveMessage message;
  message.failed = get_bool(reader, known);
  message.reason = reader.get_text(kTextBytesMax);
  TRY(finish(reader, known, "a leave message"));
  return message;
}

SharedBuffer encode(const TextMessage& message) {
  ByteWriter writer;
  put_cut(writer, message.text);
  return writer.share();
}

template <>
Result<TextMessage> decode(Bytes bytes) {
  ByteReader reader(bytes);
  TextMessage message{reader.get_text(kTextBytesMax)};
  TRY(reader.finish("a text message"));
  return message;
}

SharedBuffer encode(const SyncReplyMessage& message) {
  ByteWriter writer;
  writer.put(message.accepted);
  writer.put(message.min_clock);
  writer.put(message.credit);
  writer.put(static_cast<uint32_t>(message.waiting.size()));
  for (const uint64_t seq : message.waiting) writer.put(seq);
  return writer.share();
}

template <>
Result<SyncReplyMessage> decode(Bytes bytes) {
  ByteReader reader(bytes);
  SyncReplyMessage message;
  message.accepted = reader.get<uint64_t>();
  message.min_clock = reader.get<uint32_t>();
  message.credit = reader.get<uint64_t>();
  const size_t count = reader.get_count(sizeof(uint64_t));
  message.waiting.reserve(count);
  for (size_t i = 0; i < count; ++i) message.waiting.push_back(reader.get<uint64_t>());
  TRY(reader.finish("a sync reply"));
  return message;
}

SharedBuffer encode(const ErrorMessage& message) {
  ByteWriter writer;
  writer.put(static_cast<uint8_t>(message.code));
  put_cut(writer, message.text);
  return writer.share();
}

template <>
Result<ErrorMessage> decode(Bytes bytes) {
  ByteReader reader(bytes);
  bool known = true;
  ErrorMessage message;
  message.code = get_enum(reader, Code::kInvalid, Code::kFailed, known);
  message.text = reader.get_text(kTextBytesMax);
  TRY(finish(reader, known, "an error message"));
  return message;
}

}  // namespace pscloud

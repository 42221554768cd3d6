#include "net/frame.h"

#include <cstring>

#include "base/hash.h"

namespace pscloud {
namespace {

constexpr uint32_t kFrameMagic = 0x4c435350;  // "PSCL" as the bytes travel
constexpr uint8_t kVersion = 1;

// The header as it lies on the wire: little endian, no padding.
struct WireHeader {
  uint32_t magic;
  uint8_t version;
  uint8_t type;
  uint16_t flags;
  uint32_t payload_bytes;
  uint32_t payload_check;
  uint64_t session;
  uint64_t seq;
  uint64_t ack;
  uint64_t extra;
  uint32_t table;
  uint32_t count;
  uint32_t clock;
  uint32_t header_check;  // of all that stands before it
};
static_assert(sizeof(WireHeader) == kFrameHeaderBytes);
static_assert(offsetof(WireHeader, session) == 16 && offsetof(WireHeader, header_check) == 60);

uint32_t check_of(Bytes bytes) { return static_cast<uint32_t>(hash64(bytes)); }

uint32_t header_check_of(std::span<const std::byte, kFrameHeaderBytes> bytes) {
  return check_of(bytes.first(offsetof(WireHeader, header_check)));
}

}  // namespace

std::string_view frame_type_name(FrameType type) {
  switch (type) {
    case FrameType::kJoin: return "join";
    case FrameType::kJoinWait: return "join_wait";
    case FrameType::kView: return "view";
    case FrameType::kHeartbeat: return "heartbeat";
    case FrameType::kHeartbeatReply: return "heartbeat_reply";
    case FrameType::kBarrier: return "barrier";
    case FrameType::kBarrierWait: return "barrier_wait";
    case FrameType::kBarrierRelease: return "barrier_release";
    case FrameType::kLeave: return "leave";
    case FrameType::kRefused: return "refused";
    case FrameType::kSync: return "sync";
    case FrameType::kSyncReply: return "sync_reply";
    case FrameType::kWaiting: return "waiting";
    case FrameType::kFenced: return "fenced";
    case FrameType::kKeysUnknown: return "keys_unknown";
    case FrameType::kCreateTable: return "create_table";
    case FrameType::kOpenTable: return "open_table";
    case FrameType::kPush: return "push";
    case FrameType::kPull: return "pull";
    case FrameType::kPushPull: return "push_pull";
    case FrameType::kClock: return "clock";
    case FrameType::kReply: return "reply";
    case FrameType::kOfferWork: return "offer_work";
    case FrameType::kTakeWork: return "take_work";
    case FrameType::kFinishWork: return "finish_work";
    case FrameType::kTally: return "tally";
    case FrameType::kScan: return "scan";
    case FrameType::kSetRows: return "set_rows";
    case FrameType::kPauseWork: return "pause_work";
  }
  return "unknown";
}

bool is_known(FrameType type) { return frame_type_name(type) != "unknown"; }

HeaderBytes encode_header(const Frame& frame, bool check_payload) {
  const FrameHeader& header = frame.header;
  WireHeader wire{.magic = kFrameMagic,
                  .version = kVersion,
                  .type = static_cast<uint8_t>(header.type),
                  .flags = static_cast<uint16_t>(header.flags & ~kFlagPayloadCheck),
                  .payload_bytes = static_cast<uint32_t>(frame.payload_size()),
                  .payload_check = 0,
                  .session = header.session,
                  .seq = header.seq,
                  .ack = header.ack,
                  .extra = header.extra,
                  .table = header.table,
                  .count = header.count,
                  .clock = header.clock,
                  .header_check = 0};
  if (check_payload) {
    wire.flags |= kFlagPayloadCheck;
    wire.payload_check = static_cast<uint32_t>(hash64(frame.bytes(), frame.value_bytes()));
  }
  HeaderBytes bytes;
  std::memcpy(bytes.data(), &wire, sizeof wire);
  wire.header_check = header_check_of(bytes);
  std::memcpy(bytes.data(), &wire, sizeof wire);
  return bytes;
}

Result<FrameHeader> decode_header(std::span<const std::byte, kFrameHeaderBytes> bytes, uint32_t payload_max) {
  WireHeader wire;
  std::memcpy(&wire, bytes.data(), sizeof wire);

  // From "is it ours at all" to "is it sound": the first thing wrong is the one that tells a person most.
  if (wire.magic != kFrameMagic) return corrupt("not a pscloud frame: it begins with {:08x}, not \"PSCL\"", wire.magic);
  if (wire.version != kVersion) {
    return corrupt("frame version {}, but this program speaks version {}: use the same release on every node",
                   wire.version, kVersion);
  }
  if (wire.header_check != header_check_of(bytes)) return corrupt("frame header does not have its checksum");
  const auto type = static_cast<FrameType>(wire.type);
  if (!is_known(type)) return corrupt("unknown frame type {}", wire.type);
  if ((wire.flags & ~kFlagsKnown) != 0)
    return corrupt("unknown flags {:04x} in a {} frame", wire.flags, frame_type_name(type));
  if (wire.payload_bytes > payload_max) {
    return corrupt("{} frame with a payload of {} bytes, at most {} are taken", frame_type_name(type),
                   wire.payload_bytes, payload_max);
  }

  return FrameHeader{.type = type,
                     .flags = wire.flags,
                     .payload_bytes = wire.payload_bytes,
                     .payload_check = wire.payload_check,
                     .session = wire.session,
                     .seq = wire.seq,
                     .ack = wire.ack,
                     .extra = wire.extra,
                     .table = wire.table,
                     .count = wire.count,
                     .clock = wire.clock};
}

Result<> check_payload(const FrameHeader& header, Bytes payload) {
  if (payload.size() != header.payload_bytes) {
    return corrupt("payload of a {} frame has {} bytes, not {}", frame_type_name(header.type), payload.size(),
                   header.payload_bytes);
  }
  if ((header.flags & kFlagPayloadCheck) != 0 && header.payload_check != check_of(payload)) {
    return corrupt("payload of a {} frame ({} bytes) does not have its checksum", frame_type_name(header.type),
                   payload.size());
  }
  return {};
}

}  // namespace pscloud

#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "base/bytes.h"
#include "pscloud/error.h"
#include "pscloud/types.h"

namespace pscloud {

// What a frame is about; docs/wire-format.md specifies each. Values never change their meaning.
enum class FrameType : uint8_t {
  // Between a node and the scheduler; payloads are the messages of engine/message.h.
  kJoin = 1,
  kJoinWait = 2,
  kView = 3,
  kHeartbeat = 4,
  kHeartbeatReply = 5,
  kBarrier = 6,
  kBarrierWait = 7,
  kBarrierRelease = 8,
  kLeave = 9,
  kRefused = 10,

  // Between a worker and a server owner, outside the stream of requests.
  kSync = 32,
  kSyncReply = 33,
  kWaiting = 34,
  kFenced = 35,
  kKeysUnknown = 36,

  // Requests, in the order of their sequence numbers, and their one reply.
  kCreateTable = 64,
  kOpenTable = 65,
  kPush = 66,
  kPull = 67,
  kPushPull = 68,
  kClock = 69,
  kReply = 70,
  kOfferWork = 71,
  kTakeWork = 72,
  kFinishWork = 73,
  kTally = 74,
  kScan = 75,
  kSetRows = 76,
  kPauseWork = 77,
};
bool is_known(FrameType type);
inline bool is_request(FrameType type) { return type >= FrameType::kCreateTable && type != FrameType::kReply; }
// Requests that only read, or read what they have written: if the answer is lost, they are simply done again.
inline bool is_read(FrameType type) {
  return type == FrameType::kOpenTable || type == FrameType::kPull || type == FrameType::kPushPull ||
         type == FrameType::kScan;
}
std::string_view frame_type_name(FrameType type);

// Flags of a frame.
inline constexpr uint16_t kFlagPayloadCheck = 1;  // payload_check holds the payload's checksum
inline constexpr uint16_t kFlagRange = 2;         // `extra` is the first row; no key list in the payload
inline constexpr uint16_t kFlagOutcomeOnly = 4;   // a request sent again without its payload: what became of it?
inline constexpr uint16_t kFlagError = 8;         // a reply whose payload is an error
inline constexpr uint16_t kFlagPlain = 16;        // the payload is values and nothing else
inline constexpr uint16_t kFlagInPlace = 32;      // a pull of where the rows lie, through shared memory
inline constexpr uint16_t kFlagsKnown = 63;

inline constexpr uint32_t kFrameHeaderBytes = 64;
inline constexpr uint32_t kPayloadBytesMax = 16u << 20;        // no frame is larger
inline constexpr uint32_t kPayloadBytesStranger = 256u << 10;  // until the peer has shown who it is

// The fixed part of every frame. Fields that a type does not use are zero.
struct FrameHeader {
  FrameType type = FrameType::kHeartbeat;
  uint16_t flags = 0;
  uint32_t payload_bytes = 0;  // set when the frame is sent
  uint32_t payload_check = 0;  // set when the frame is sent
  uint64_t session = 0;        // of the node whose stream this belongs to
  uint64_t seq = 0;            // of the request in that stream, from 1
  uint64_t ack = 0;            // requests: every smaller seq has been answered
  uint64_t extra = 0;  // requests: first row of a range; replies: credit; sync: session of the owner that is meant
  TableId table = 0;
  uint32_t count = 0;  // keys or rows
  uint32_t clock = 0;

  bool operator==(const FrameHeader&) const = default;
};

// The payload travels as one, but may be sent in two pieces, so that values go from where they lie.
struct Frame {
  FrameHeader header;
  SharedBuffer payload = nullptr;  // null: none
  SharedBuffer values = nullptr;   // null: none; follows `payload`. A received frame has it where nothing was copied

  Bytes bytes() const { return payload ? payload->span() : Bytes{}; }
  Bytes value_bytes() const { return values ? values->span() : Bytes{}; }
  uint64_t payload_size() const { return bytes().size() + value_bytes().size(); }
  uint64_t size() const { return kFrameHeaderBytes + payload_size(); }
};

using HeaderBytes = std::array<std::byte, kFrameHeaderBytes>;

// The header as it travels, with length and, if `check_payload`, checksum of the payload filled in.
HeaderBytes encode_header(const Frame& frame, bool check_payload);

// kCorrupt says what is wrong: magic, version, checksum, type, flags, or a payload above `payload_max`.
// Nothing of the header may be believed before this has returned ok.
Result<FrameHeader> decode_header(std::span<const std::byte, kFrameHeaderBytes> bytes, uint32_t payload_max);

// kCorrupt if the header carries a checksum that `payload` does not have.
Result<> check_payload(const FrameHeader& header, Bytes payload);

}  // namespace pscloud

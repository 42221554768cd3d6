// The frame decoder: a header of 64 bytes, then its payload. The first byte of the input says which checksums to make
// right, since no fuzzer finds them: bit 0 the header's, bit 1 the payload's and its length.
#include <cstring>

#include "base/check.h"
#include "base/hash.h"
#include "net/frame.h"

namespace pscloud {
namespace {

void put_u32(HeaderBytes& header, size_t at, uint32_t value) { std::memcpy(header.data() + at, &value, sizeof value); }

void run(Bytes input) {
  if (input.size() < 1 + kFrameHeaderBytes) return;
  const auto mode = static_cast<uint8_t>(input[0]);
  HeaderBytes header;
  std::memcpy(header.data(), input.data() + 1, header.size());
  const Bytes payload = input.subspan(1 + kFrameHeaderBytes);
  if (mode & 2) {
    put_u32(header, 8, static_cast<uint32_t>(payload.size()));
    put_u32(header, 12, static_cast<uint32_t>(hash64(payload)));
  }
  if (mode & 1) put_u32(header, 60, static_cast<uint32_t>(hash64(Bytes(header).first(60))));

  auto decoded = decode_header(header, kPayloadBytesMax);
  if (!decoded) {
    CHECK(decoded.error().code == Code::kCorrupt);
    return;
  }
  CHECK(decoded->payload_bytes <= kPayloadBytesMax && is_known(decoded->type));
  if (!check_payload(*decoded, payload)) return;

  const bool checked = (decoded->flags & kFlagPayloadCheck) != 0;
  const Frame frame{*decoded, std::make_shared<const Buffer>(Buffer::copy_of(payload))};
  const auto again = decode_header(encode_header(frame, checked), kPayloadBytesMax);
  if (!checked) decoded->payload_check = 0;  // means nothing then
  CHECK(again && *again == *decoded);
  CHECK(check_payload(*again, payload));
}

}  // namespace
}  // namespace pscloud

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  pscloud::run(std::as_bytes(std::span(data, size)));
  return 0;
}

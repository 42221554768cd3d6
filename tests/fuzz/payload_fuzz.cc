// The decoder of payloads. Input: a byte of what must be there (bit 0 keys, bit 1 values), a byte of rows, a byte of
// width, then the payload. The receiver's key cache knows one list, so that signatures can be right.
#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "engine/filter/filter.h"

namespace pscloud {
namespace {

const std::vector<Key> kKnownKeys{1, 2, 3, UINT64_MAX};

// Bit by bit: the values of an unfiltered payload may be NaN.
bool same_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

// What was decoded must survive this chain, which loses nothing.
void check_round_trip(const DecodedPayload& decoded, size_t rows, size_t width, bool with_values,
                      std::span<const FilterSpec> chain) {
  const bool with_keys = !decoded.keys.empty();
  Random random(7);
  KeyCache sender(1 << 16), receiver(1 << 16);
  for (int round = 0; round < 2; ++round) {  // the second time keys travel as their signature
    const auto payload = encode_payload(chain, decoded.keys, decoded.values, rows, {&random, &sender});
    CHECK(payload.has_value());
    Frame frame;
    payload->put_in(frame);
    const auto again = decode_payload(frame, rows, width, with_keys, with_values, {&random, &receiver});
    CHECK(again && !again->keys_unknown);
    CHECK(again->keys == decoded.keys && same_bits(again->values, decoded.values));
  }
}

void run(Bytes input) {
  if (input.size() < 3) return;
  const auto mode = static_cast<uint8_t>(input[0]);
  const auto rows = static_cast<size_t>(input[1]);
  const size_t width = static_cast<size_t>(input[2]) % 8 + 1;
  const bool with_keys = mode & 1;
  const bool with_values = mode & 2;

  Random random(7);
  KeyCache cache(4096);
  cache.store(hash128(bytes_of(std::span<const Key>(kKnownKeys))), kKnownKeys);
  // A copy, so that it is aligned as a received one is. In one piece, in two, or plain.
  const Bytes payload = input.subspan(3);
  Frame frame;
  frame.header.flags = mode & 4 ? kFlagPlain : 0;
  const size_t cut = mode & 8 ? payload.size() / 2 : payload.size();
  frame.payload = std::make_shared<const Buffer>(Buffer::copy_of(payload.first(cut)));
  if (cut < payload.size()) frame.values = std::make_shared<const Buffer>(Buffer::copy_of(payload.subspan(cut)));
  const auto decoded = decode_payload(frame, rows, width, with_keys, with_values, {&random, &cache});
  CHECK(cache.bytes() <= 4096);
  if (!decoded) {
    CHECK(decoded.error().code == Code::kCorrupt);
    return;
  }
  CHECK(decoded->values.size() == (with_values ? rows * width : 0));
  CHECK(decoded->keys.size() == (with_keys && !decoded->keys_unknown ? rows : 0));

  const FilterSpec small[] = {{FilterKind::kKeyCaching}, {FilterKind::kDropZeros}, {FilterKind::kLz4}};
  check_round_trip(*decoded, rows, width, with_values, {});
  check_round_trip(*decoded, rows, width, with_values, small);
}

}  // namespace
}  // namespace pscloud

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  pscloud::run(std::as_bytes(std::span(data, size)));
  return 0;
}

#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "engine/filter/filter.h"

namespace pscloud {

// The two ends of a connection, for the tests of filters.
struct FilterEnds {
  Random random{7};
  KeyCache sender_cache{1 << 20};
  KeyCache receiver_cache{1 << 20};
  bool plain = false;  // what was encoded last

  Result<SharedBuffer> encode(const std::vector<FilterSpec>& filters, const std::vector<Key>& keys,
                              const std::vector<float>& values, size_t rows) {
    const auto encoded = TRY(encode_payload(filters, keys, Floats(values), rows, {&random, &sender_cache}));
    plain = encoded.plain;
    return encoded.joined();
  }
  Result<DecodedPayload> decode(Bytes payload, size_t rows, size_t width, bool with_keys, bool with_values) {
    Frame frame;
    frame.payload = std::make_shared<const Buffer>(Buffer::copy_of(payload));
    if (plain) frame.header.flags = kFlagPlain;
    return decode_payload(frame, rows, width, with_keys, with_values, {&random, &receiver_cache});
  }

  // Values of one row each, through `filters` and back.
  std::vector<float> pass(const std::vector<FilterSpec>& filters, const std::vector<float>& values) {
    const auto payload = encode(filters, {}, values, values.size());
    EXPECT_TRUE(payload.has_value()) << payload.error().message;
    const auto decoded = decode((*payload)->span(), values.size(), 1, false, true);
    EXPECT_TRUE(decoded.has_value()) << decoded.error().message;
    return {decoded->values.span().begin(), decoded->values.span().end()};
  }
};

// Flips each byte to every value and cuts at each length: what decodes has the right sizes, the rest is kCorrupt.
inline void expect_damage_is_harmless(const SharedBuffer& payload, size_t rows, size_t width, bool with_keys,
                                      bool with_values) {
  std::vector<std::byte> bytes(payload->span().begin(), payload->span().end());
  const auto check = [&](Bytes damaged) {
    FilterEnds ends;
    const auto decoded = ends.decode(damaged, rows, width, with_keys, with_values);
    if (!decoded) {
      EXPECT_EQ(decoded.error().code, Code::kCorrupt) << decoded.error().message;
      return;
    }
    EXPECT_EQ(decoded->values.size(), with_values ? rows * width : 0);
    EXPECT_EQ(decoded->keys.size(), with_keys && !decoded->keys_unknown ? rows : 0);
  };
  for (std::byte& byte : bytes) {
    const std::byte saved = byte;
    for (int value = 0; value < 256; ++value) {
      byte = static_cast<std::byte>(value);
      check(bytes);
    }
    byte = saved;
  }
  for (size_t size = 0; size < bytes.size(); ++size) check(Bytes(bytes).first(size));
}

}  // namespace pscloud

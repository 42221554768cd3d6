#include "net/frame.h"

#include <gtest/gtest.h>

#include "base/hash.h"
#include "base/random.h"

namespace pscloud {
namespace {

Frame full_frame() {
  Frame frame{.header = {.type = FrameType::kPushPull,
                         .flags = kFlagRange,
                         .session = 0x1122334455667788,
                         .seq = 7,
                         .ack = 5,
                         .extra = 1u << 31,
                         .table = 0xdeadbeef,
                         .count = 3,
                         .clock = 11},
              .payload = std::make_shared<const Buffer>(Buffer::copy_of(bytes_of("payload")))};
  return frame;
}

// Puts `value` at `offset` and makes the header's checksum right again.
template <class T>
HeaderBytes with(HeaderBytes bytes, size_t offset, T value) {
  std::memcpy(bytes.data() + offset, &value, sizeof value);
  const auto check = static_cast<uint32_t>(hash64(Bytes(bytes).first(60)));
  std::memcpy(bytes.data() + 60, &check, sizeof check);
  return bytes;
}

std::string error_of(const HeaderBytes& bytes, uint32_t payload_max = kPayloadBytesMax) {
  const auto header = decode_header(bytes, payload_max);
  if (header) return "";
  EXPECT_EQ(header.error().code, Code::kCorrupt);
  return header.error().message;
}

TEST(Frame, HeaderComesBackAsItWas) {
  const Frame frame = full_frame();
  const auto header = decode_header(encode_header(frame, false), kPayloadBytesMax);
  ASSERT_TRUE(header) << header.error().message;
  FrameHeader expected = frame.header;
  expected.payload_bytes = 7;
  EXPECT_EQ(*header, expected);
}

TEST(Frame, FieldsLieWhereTheWireFormatSays) {
  const HeaderBytes bytes = encode_header(full_frame(), true);
  const auto at = [&]<class T>(size_t offset, T) {
    T value;
    std::memcpy(&value, bytes.data() + offset, sizeof value);
    return value;
  };
  EXPECT_EQ(std::memcmp(bytes.data(), "PSCL", 4), 0);
  EXPECT_EQ(at(4, uint8_t{}), 1);
  EXPECT_EQ(at(5, uint8_t{}), 68);
  EXPECT_EQ(at(6, uint16_t{}), kFlagRange | kFlagPayloadCheck);
  EXPECT_EQ(at(8, uint32_t{}), 7u);
  EXPECT_EQ(at(12, uint32_t{}), static_cast<uint32_t>(hash64(bytes_of("payload"))));
  EXPECT_EQ(at(16, uint64_t{}), 0x1122334455667788u);
  EXPECT_EQ(at(24, uint64_t{}), 7u);
  EXPECT_EQ(at(32, uint64_t{}), 5u);
  EXPECT_EQ(at(40, uint64_t{}), 1u << 31);
  EXPECT_EQ(at(48, uint32_t{}), 0xdeadbeefu);
  EXPECT_EQ(at(52, uint32_t{}), 3u);
  EXPECT_EQ(at(56, uint32_t{}), 11u);
  EXPECT_EQ(at(60, uint32_t{}), static_cast<uint32_t>(hash64(Bytes(bytes).first(60))));
}

TEST(Frame, EachThingWrongIsNamed) {
  const HeaderBytes good = encode_header(full_frame(), false);
  EXPECT_EQ(error_of(good), "");
  EXPECT_EQ(error_of(with(good, 0, uint32_t{0x20544547})),
            "not a pscloud frame: it begins with 20544547, not \"PSCL\"");
  EXPECT_EQ(error_of(with(good, 4, uint8_t{2})),
            "frame version 2, but this program speaks version 1: use the same release on every node");
  EXPECT_EQ(error_of(with(good, 5, uint8_t{200})), "unknown frame type 200");
  EXPECT_EQ(error_of(with(good, 6, uint16_t{0x8002})), "unknown flags 8002 in a push_pull frame");
  EXPECT_EQ(error_of(with(good, 8, uint32_t{1001}), 1000),
            "push_pull frame with a payload of 1001 bytes, at most 1000 are taken");
  EXPECT_EQ(error_of(with(good, 8, uint32_t{1000}), 1000), "");
}

TEST(Frame, AnyFlippedBitOfTheHeaderIsSeen) {
  const HeaderBytes good = encode_header(full_frame(), true);
  for (size_t bit = 0; bit < good.size() * 8; ++bit) {
    HeaderBytes bad = good;
    bad[bit / 8] ^= std::byte{1} << bit % 8;
    EXPECT_NE(error_of(bad), "") << "bit " << bit;
  }
}

TEST(Frame, RandomBytesAreNeverAHeader) {
  Random random(1);
  for (int i = 0; i < 10000; ++i) {
    HeaderBytes bytes;
    for (auto& byte : bytes) byte = static_cast<std::byte>(random.next());
    if (i % 2 == 0) std::memcpy(bytes.data(), "PSCL\1", 5);
    EXPECT_NE(error_of(bytes), "") << i;
  }
}

TEST(Frame, AChangedPayloadIsSeenOnlyIfItHasAChecksum) {
  for (const bool check : {false, true}) {
    const auto header = *decode_header(encode_header(full_frame(), check), kPayloadBytesMax);
    EXPECT_TRUE(check_payload(header, bytes_of("payload")));
    EXPECT_EQ(check_payload(header, bytes_of("paYload")).has_value(), !check);
    EXPECT_FALSE(check_payload(header, bytes_of("pay")));
  }
}

TEST(Frame, AFrameThatCameWithAChecksumCanBeSentOnWithoutOne) {
  Frame frame = full_frame();
  frame.header.flags |= kFlagPayloadCheck;
  const auto header = *decode_header(encode_header(frame, false), kPayloadBytesMax);
  EXPECT_EQ(header.flags, kFlagRange);
  EXPECT_EQ(header.payload_check, 0u);
}

TEST(Frame, TypesHaveNamesAndOthersAreUnknown) {
  EXPECT_EQ(frame_type_name(FrameType::kKeysUnknown), "keys_unknown");
  EXPECT_TRUE(is_known(FrameType::kReply));
  EXPECT_FALSE(is_known(FrameType{0}));
  EXPECT_FALSE(is_known(FrameType{78}));
  EXPECT_TRUE(is_request(FrameType::kClock));
  EXPECT_TRUE(is_request(FrameType::kScan));
  EXPECT_FALSE(is_request(FrameType::kReply));
}

}  // namespace
}  // namespace pscloud

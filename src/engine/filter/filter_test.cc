#include "engine/filter/filter.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <numeric>

#include "engine/filter/filter_order.h"
#include "engine/filter/filter_testing.h"

namespace pscloud {
namespace {

// Every chain of up to three filters that a table may have; noise of deviation 0 so that values can be compared.
std::vector<std::vector<FilterSpec>> all_chains() {
  std::vector<std::vector<FilterSpec>> chains{{}};
  for (size_t from = 0, length = 1; length <= 3; ++length) {
    const size_t to = chains.size();
    for (; from < to; ++from) {
      for (int kind = 1; kind <= 8; ++kind) {
        auto chain = chains[from];
        chain.push_back({static_cast<FilterKind>(kind), 2, 0, 0});
        std::vector<FilterKind> kinds;
        for (const FilterSpec& filter : chain) kinds.push_back(filter.kind);
        if (check_filter_order(kinds)) chains.push_back(chain);
      }
    }
  }
  return chains;
}

std::string name_of(const std::vector<FilterSpec>& chain) {
  std::string name;
  for (const FilterSpec& filter : chain) name += fmt::format(" {}", filter_name(filter.kind));
  return name;
}

// How far a value may move on its way, relative to the largest of its payload or to itself.
float tolerance(const std::vector<FilterSpec>& chain, float value, float largest) {
  for (const FilterSpec& filter : chain) {
    if (filter.kind == FilterKind::kFixedPoint) return largest / 32767 * 1.001f;
    if (filter.kind == FilterKind::kFloat16) return std::max(std::abs(value) * 0x1p-11f, 0x1p-25f);
    if (filter.kind == FilterKind::kBfloat16) return std::abs(value) * 0x1p-8f;
  }
  return 0;
}

struct Request {
  std::vector<Key> keys;
  std::vector<float> values;
  size_t rows = 0;
  size_t width = 0;
};

Request any_request() {
  Request request;
  request.rows = *rc::gen::inRange<size_t>(0, 60);
  request.width = *rc::gen::inRange<size_t>(1, 5);
  if (*rc::gen::arbitrary<bool>()) {
    request.keys = *rc::gen::container<std::vector<Key>>(request.rows, rc::gen::arbitrary<Key>());
  }
  if (*rc::gen::arbitrary<bool>()) {
    const auto numbers = *rc::gen::container<std::vector<int>>(request.rows * request.width, rc::gen::inRange(-60, 60));
    // Half of them zero.
    for (const int number : numbers) request.values.push_back(number < 0 ? 0.0f : static_cast<float>(number) / 7);
  }
  return request;
}

RC_GTEST_PROP(Filter, EveryChainBringsKeysBackAndValuesWithinItsTolerance, ()) {
  const Request request = any_request();
  const bool with_keys = !request.keys.empty();
  const bool with_values = !request.values.empty();
  const float largest = std::accumulate(request.values.begin(), request.values.end(), 0.0f,
                                        [](float a, float b) { return std::max(a, b); });
  for (const auto& chain : all_chains()) {
    FilterEnds ends;
    // Twice, so that key caching sends only the signature.
    for (int round = 0; round < 2; ++round) {
      RC_LOG() << name_of(chain) << ", round " << round << "\n";
      const auto payload = ends.encode(chain, request.keys, request.values, request.rows);
      RC_ASSERT(payload.has_value());
      const auto decoded = ends.decode((*payload)->span(), request.rows, request.width, with_keys, with_values);
      RC_ASSERT(decoded.has_value());
      RC_ASSERT(!decoded->keys_unknown);
      RC_ASSERT(decoded->keys == request.keys);
      RC_ASSERT(decoded->values.size() == request.values.size());
      for (size_t i = 0; i < request.values.size(); ++i) {
        const float value = request.values[i];
        RC_ASSERT(std::abs(decoded->values[i] - value) <= tolerance(chain, value, largest));
        if (value == 0) RC_ASSERT(decoded->values[i] == 0);
      }
      // Nothing but what was sent is accepted in its place.
      const Bytes bytes = (*payload)->span();
      RC_ASSERT(!ends.decode(bytes.first(bytes.size() - 1), request.rows, request.width, with_keys, with_values));
      if (request.rows > 0 && (with_keys || with_values)) {
        // Not one row more: the bitmap of drop_zeros is the same for both if that row is zero.
        RC_ASSERT(!ends.decode(bytes, request.rows + 8, request.width, with_keys, with_values));
        RC_ASSERT(!ends.decode(bytes, request.rows, request.width, !with_keys, with_values));
        RC_ASSERT(!ends.decode(bytes, request.rows, request.width, with_keys, !with_values));
      }
    }
  }
}

TEST(Filter, UnfilteredKeysAndValuesStandBehindAShortHeadAndAligned) {
  FilterEnds ends;
  const auto payload = ends.encode({}, {1, 2}, {3, 4}, 2);
  ASSERT_TRUE(payload.has_value());
  ByteReader reader((*payload)->span());
  EXPECT_EQ(reader.get<uint8_t>(), 0);
  EXPECT_EQ(reader.get<uint32_t>(), 16u);
  EXPECT_EQ(reader.get_raw(3).size(), 3u);
  EXPECT_EQ(reader.get<Key>(), 1u);
  EXPECT_EQ(reader.get<Key>(), 2u);
  EXPECT_EQ(reader.get<float>(), 3);
  EXPECT_EQ(reader.get<float>(), 4);
  EXPECT_TRUE(reader.finish("payload").has_value());
}

TEST(Filter, AnyDamageIsHarmless) {
  const std::vector<FilterSpec> chains[] = {
      {},
      {{FilterKind::kKeyCaching}, {FilterKind::kFixedPoint, 3}, {FilterKind::kDropZeros}, {FilterKind::kLz4}},
      {{FilterKind::kNoise}, {FilterKind::kBfloat16}, {FilterKind::kDropZeros}, {FilterKind::kZstd}},
  };
  std::vector<Key> keys(24);
  std::iota(keys.begin(), keys.end(), 100);
  std::vector<float> values(keys.size() * 2, 0.0f);
  values[5] = 1;
  for (const auto& chain : chains) {
    FilterEnds ends;
    const auto payload = ends.encode(chain, keys, values, keys.size());
    ASSERT_TRUE(payload.has_value());
    SCOPED_TRACE(name_of(chain));
    expect_damage_is_harmless(*payload, keys.size(), 2, true, true);
  }
}

TEST(Filter, RandomBytesAreAPayloadOrCorrupt) {
  Random random(7);
  for (int round = 0; round < 50000; ++round) {
    std::vector<std::byte> bytes(random.below(64));
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.chance(0.6) ? random.below(9) : random.next());
    FilterEnds ends;
    const auto decoded =
        ends.decode(bytes, random.below(5), 1 + random.below(3), random.chance(0.5), random.chance(0.5));
    EXPECT_TRUE(decoded.has_value() || decoded.error().code == Code::kCorrupt);
  }
}

TEST(Filter, HostileRowCountsAreRefusedBeforeMemoryIsAskedFor) {
  FilterEnds ends;
  // drop_zeros that claims to have kept nothing of 2^32 rows: its bitmap alone would be half a gigabyte.
  ByteWriter writer;
  writer.put(uint8_t{1});
  writer.put(FilterKind::kDropZeros);
  writer.put(uint16_t{4});
  writer.put(uint32_t{0});
  writer.put(uint32_t{0});
  for (const size_t rows : {size_t{1} << 32, SIZE_MAX, SIZE_MAX / 4 + 1}) {
    const auto decoded = ends.decode(writer.bytes(), rows, 65536, false, true);
    ASSERT_FALSE(decoded.has_value());
    EXPECT_EQ(decoded.error().code, Code::kCorrupt);
  }
}

TEST(Filter, ChainsThatNoTableMayHaveAreCorrupt) {
  ByteWriter writer;
  writer.put(uint8_t{2});
  for (int i = 0; i < 2; ++i) {
    writer.put(FilterKind::kFloat16);
    writer.put(uint16_t{0});
  }
  writer.put(uint32_t{0});
  writer.put(uint8_t{0});
  FilterEnds ends;
  const auto decoded = ends.decode(writer.bytes(), 1, 1, false, true);
  ASSERT_FALSE(decoded.has_value());
  EXPECT_EQ(decoded.error().code, Code::kCorrupt);
}

TEST(Filter, FiltersWithNothingToDoLeaveNoTrace) {
  FilterEnds ends;
  const std::vector<FilterSpec> chain{{FilterKind::kKeyCaching}, {FilterKind::kFixedPoint}, {FilterKind::kLz4}};
  const auto empty = ends.encode(chain, {}, {}, 0);
  ASSERT_TRUE(empty.has_value());
  EXPECT_EQ((*empty)->size(), 8u);
  const auto reply = ends.encode({{FilterKind::kKeyCaching}}, {}, {1, 2}, 2);
  ASSERT_TRUE(reply.has_value());
  EXPECT_EQ((*reply)->size(), 8u);
  EXPECT_TRUE(ends.plain);
}

TEST(Filter, ValuesThatNoFilterChangesAreNotCopied) {
  FilterEnds ends;
  const Floats values{1, 2, 3};
  const auto sent = encode_payload({}, std::vector<Key>{7, 8, 9}, values, 3, {});
  ASSERT_TRUE(sent);
  EXPECT_EQ(sent->values->data(), bytes_of(values.span()).data());
  Frame in_two;
  sent->put_in(in_two);
  EXPECT_EQ(decode_payload(in_two, 3, 1, true, true, {})->values.data(), values.data());
  const Frame in_one{.header = {}, .payload = sent->joined()};
  const auto received = decode_payload(in_one, 3, 1, true, true, {});
  EXPECT_EQ(bytes_of(received->values.span()).data(), in_one.payload->data() + 8 + 24);
}

TEST(Filter, FiltersAreNotUndoneInMemoryThatAPeerCanChange) {
  const std::vector<FilterSpec> chain{{FilterKind::kKeyCaching}};  // leaves the values alone
  KeyCache sender(1 << 20), receiver(1 << 20);
  const auto sent = encode_payload(chain, std::vector<Key>{7}, Floats{1}, 1, {nullptr, &sender});
  ASSERT_TRUE(sent);
  Frame frame;
  sent->put_in(frame);
  Buffer memory = Buffer::copy_of(frame.value_bytes());
  frame.values = std::make_shared<const Buffer>(memory.span(), nullptr, Buffer::kPeers);
  const auto received = decode_payload(frame, 1, 1, true, true, {nullptr, &receiver});
  ASSERT_TRUE(received);
  EXPECT_NE(bytes_of(received->values.span()).data(), memory.data());
  frame.payload = nullptr;
  frame.header.flags = kFlagPlain;
  EXPECT_EQ(bytes_of(decode_payload(frame, 1, 1, false, true, {})->values.span()).data(), memory.data())
      << "without filters they are used where they lie";
}

TEST(Filter, APlainPayloadIsExactlyItsValues) {
  Frame frame{.header = {.flags = kFlagPlain}, .payload = std::make_shared<const Buffer>(12)};
  EXPECT_TRUE(decode_payload(frame, 3, 1, false, true, {}));
  EXPECT_FALSE(decode_payload(frame, 2, 1, false, true, {}));
  EXPECT_FALSE(decode_payload(frame, 3, 1, true, true, {})) << "a request that must name keys";
  EXPECT_FALSE(decode_payload(frame, 3, 1, false, false, {}));
  frame.payload = nullptr;
  EXPECT_FALSE(decode_payload(frame, 3, 1, false, true, {}));
  EXPECT_FALSE(decode_payload(frame, 0, 1, false, true, {}));
}

}  // namespace
}  // namespace pscloud

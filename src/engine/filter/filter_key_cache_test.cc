#include <gtest/gtest.h>

#include <numeric>

#include "engine/filter/filter_testing.h"

namespace pscloud {
namespace {

const std::vector<FilterSpec> kKeysCached{{FilterKind::kKeyCaching}};

Hash128 signature_of(const std::vector<Key>& keys) { return hash128(bytes_of(std::span<const Key>(keys))); }

TEST(KeyCaching, SecondTimeOnlyTheSignatureTravels) {
  FilterEnds ends;
  std::vector<Key> keys(1000);
  std::iota(keys.begin(), keys.end(), 5);
  const auto first = ends.encode(kKeysCached, keys, {}, keys.size());
  const auto second = ends.encode(kKeysCached, keys, {}, keys.size());
  ASSERT_TRUE(first && second);
  EXPECT_GT((*first)->size(), 8000u);
  EXPECT_LE((*second)->size(), 32u);
  EXPECT_EQ(ends.decode((*first)->span(), 1000, 1, true, false)->keys, keys);
  EXPECT_EQ(ends.decode((*second)->span(), 1000, 1, true, false)->keys, keys);
}

TEST(KeyCaching, ListsThatShareAHeadAreDifferent) {
  FilterEnds ends;
  std::vector<Key> keys(1000);
  std::iota(keys.begin(), keys.end(), 5);
  auto other = keys;
  other.back() += 1;
  for (const auto& list : {keys, other, keys, other}) {
    const auto payload = ends.encode(kKeysCached, list, {}, list.size());
    ASSERT_TRUE(payload.has_value());
    const auto decoded = ends.decode((*payload)->span(), list.size(), 1, true, false);
    ASSERT_TRUE(decoded.has_value());
    EXPECT_EQ(decoded->keys, list);
  }
}

TEST(KeyCaching, ListTheReceiverLostIsAskedFor) {
  FilterEnds ends;
  const std::vector<Key> keys{1, 2, 3};
  ASSERT_TRUE(ends.encode(kKeysCached, keys, {}, 3).has_value());  // lost on its way
  const auto payload = ends.encode(kKeysCached, keys, {1, 2, 3}, 3);
  ASSERT_TRUE(payload.has_value());
  const auto decoded = ends.decode((*payload)->span(), 3, 1, true, true);
  ASSERT_TRUE(decoded.has_value()) << decoded.error().message;
  EXPECT_TRUE(decoded->keys_unknown);
  EXPECT_TRUE(decoded->keys.empty());
  EXPECT_EQ(decoded->signature, signature_of(keys));

  ends.sender_cache.forget(decoded->signature);
  const auto again = ends.encode(kKeysCached, keys, {1, 2, 3}, 3);
  EXPECT_EQ(ends.decode((*again)->span(), 3, 1, true, true)->keys, keys);
}

TEST(KeyCaching, KnownListIsNotCopiedAndKeepsTheMemoOfItsTable) {
  FilterEnds ends;
  const std::vector<Key> keys{1, 2, 3};
  const auto decode = [&] {
    const auto payload = ends.encode(kKeysCached, keys, {}, 3);
    return ends.decode((*payload)->span(), 3, 1, true, false)->keys;
  };
  const KeyList first = decode();
  ASSERT_NE(first.memo(), nullptr);
  first.memo()->rows = {7, 8, 9};
  const KeyList second = decode();
  EXPECT_EQ(second.data(), first.data());
  EXPECT_EQ(second.memo()->rows[2], 9u);
  // What an operation still uses outlives its place in the cache.
  ends.receiver_cache.forget(signature_of(keys));
  EXPECT_EQ(second, keys);
}

TEST(KeyCaching, ListThatIsNotKeptHasNoMemo) {
  KeyCache sender(100), receiver(100);
  const std::vector<Key> keys(200, 7);
  for (KeyCache* cache : {&receiver, static_cast<KeyCache*>(nullptr)}) {
    const auto payload = encode_payload(kKeysCached, keys, {}, 200, {nullptr, &sender});
    const auto decoded =
        decode_payload(Frame{.header = {}, .payload = payload->joined()}, 200, 1, true, false, {nullptr, cache});
    ASSERT_TRUE(decoded.has_value());
    EXPECT_EQ(decoded->keys, keys);
    EXPECT_EQ(decoded->keys.memo(), nullptr);
  }
}

TEST(KeyCaching, EvictionAtBothEndsForgetsTheSameList) {
  FilterEnds ends;
  KeyCache sender(4500), receiver(4500);
  std::vector<std::vector<Key>> lists;
  for (Key first = 0; first < 4; ++first) {
    lists.emplace_back(100);  // 1200 bytes and a head: three fit
    std::iota(lists.back().begin(), lists.back().end(), first * 1000);
  }
  const auto send = [&](const std::vector<Key>& keys) {
    const auto payload = encode_payload(kKeysCached, keys, {}, keys.size(), {nullptr, &sender});
    EXPECT_TRUE(payload.has_value());
    const auto decoded = decode_payload(Frame{.header = {}, .payload = payload->joined()}, keys.size(), 1, true, false,
                                        {nullptr, &receiver});
    EXPECT_TRUE(decoded.has_value());
    EXPECT_EQ(decoded->keys, keys);
    return payload->size();
  };
  for (size_t i = 0; i < 3; ++i) EXPECT_GT(send(lists[i]), 800u);
  EXPECT_LT(send(lists[0]), 100u);  // now 1 is the oldest used
  EXPECT_GT(send(lists[3]), 800u);  // in its place
  EXPECT_LT(send(lists[0]), 100u);
  EXPECT_LT(send(lists[2]), 100u);
  EXPECT_GT(send(lists[1]), 800u);
  EXPECT_EQ(sender.bytes(), receiver.bytes());
  EXPECT_LE(receiver.bytes(), 4500u);
}

TEST(KeyCaching, ListThatIsTooLargeForTheCacheAlwaysTravelsWhole) {
  KeyCache sender(1000), receiver(1000);
  const std::vector<Key> keys(200, 7);
  for (int round = 0; round < 2; ++round) {
    const auto payload = encode_payload(kKeysCached, keys, {}, keys.size(), {nullptr, &sender});
    ASSERT_TRUE(payload.has_value());
    EXPECT_GT(payload->size(), 1600u);
    EXPECT_EQ(
        decode_payload(Frame{.header = {}, .payload = payload->joined()}, 200, 1, true, false, {nullptr, &receiver})
            ->keys,
        keys);
  }
  EXPECT_EQ(sender.bytes(), 0u);
  EXPECT_EQ(receiver.bytes(), 0u);
}

TEST(KeyCaching, RequestThatWasNeverSentLeavesNothingInTheCache) {
  FilterEnds ends;
  const std::vector<FilterSpec> chain{{FilterKind::kKeyCaching}, {FilterKind::kFloat16}};
  EXPECT_FALSE(ends.encode(chain, {1, 2}, {1, 1e9f}, 2).has_value());
  EXPECT_EQ(ends.sender_cache.bytes(), 0u);
  const auto payload = ends.encode(chain, {1, 2}, {1, 1}, 2);
  EXPECT_FALSE(ends.decode((*payload)->span(), 2, 1, true, true)->keys_unknown);
}

TEST(KeyCaching, AListThatComesTwiceIsForgottenAtBothEnds) {
  FilterEnds ends;
  const std::vector<FilterSpec> once{{.kind = FilterKind::kKeyCaching, .once = true}};
  const std::vector<Key> keys(100, 7);
  for (int round = 0; round < 2; ++round) {
    const auto pull = ends.encode(once, keys, {}, 100);
    EXPECT_GT((*pull)->size(), 800u);
    EXPECT_EQ(ends.decode((*pull)->span(), 100, 1, true, false)->keys, keys);
    EXPECT_GT(ends.receiver_cache.bytes(), 800u);
    const auto push = ends.encode(once, keys, std::vector<float>(100, 1), 100);
    EXPECT_LT((*push)->size(), 500u);
    EXPECT_EQ(ends.decode((*push)->span(), 100, 1, true, true)->keys, keys);
    EXPECT_EQ(ends.sender_cache.bytes(), 0u);
    EXPECT_EQ(ends.receiver_cache.bytes(), 0u);
  }
}

TEST(KeyCaching, APushThatWasNeverSentForgetsNothing) {
  FilterEnds ends;
  const std::vector<FilterSpec> chain{{.kind = FilterKind::kKeyCaching, .once = true}, {FilterKind::kFloat16}};
  ASSERT_TRUE(ends.decode((*ends.encode(chain, {1, 2}, {}, 2))->span(), 2, 1, true, false).has_value());
  EXPECT_FALSE(ends.encode(chain, {1, 2}, {1, 1e9f}, 2).has_value());
  EXPECT_GT(ends.sender_cache.bytes(), 0u);
}

TEST(KeyCaching, SignatureOfAnotherLengthIsCorrupt) {
  FilterEnds ends;
  ASSERT_TRUE(ends.decode((*ends.encode(kKeysCached, {1, 2}, {}, 2))->span(), 2, 1, true, false).has_value());
  const auto payload = ends.encode(kKeysCached, {1, 2}, {}, 2);
  const auto decoded = ends.decode((*payload)->span(), 3, 1, true, false);
  ASSERT_FALSE(decoded.has_value());
  EXPECT_EQ(decoded.error().code, Code::kCorrupt);
}

TEST(KeyCaching, ListThatIsNotItsSignatureIsNotStored) {
  FilterEnds ends;
  const auto payload = ends.encode(kKeysCached, {1, 2}, {}, 2);
  std::vector<std::byte> bytes((*payload)->span().begin(), (*payload)->span().end());
  bytes.back() ^= std::byte{1};
  EXPECT_FALSE(ends.decode(bytes, 2, 1, true, false).has_value());
  EXPECT_EQ(ends.receiver_cache.bytes(), 0u);
}

TEST(KeyCaching, WithoutACacheTheListTravelsWhole) {
  const std::vector<Key> keys{1, 2};
  const auto payload = encode_payload(kKeysCached, keys, {}, 2, {});
  ASSERT_TRUE(payload.has_value());
  EXPECT_EQ(decode_payload(Frame{.header = {}, .payload = payload->joined()}, 2, 1, true, false, {})->keys, keys);
}

TEST(KeyCache, CountsWhatTheWireFormatSays) {
  KeyCache cache(100000);
  cache.store(signature_of({1, 2, 3}), std::vector<Key>{1, 2, 3});
  EXPECT_EQ(cache.bytes(), 256u + 3 * 12);
}

TEST(KeyCache, ManySmallListsCostMoreThanTheirKeys) {
  KeyCache cache(100000);
  for (Key key = 0; key < 10000; ++key) cache.store(signature_of({key}), std::vector<Key>{key});
  EXPECT_LE(cache.bytes(), 100000u);
  EXPECT_EQ(cache.find(signature_of({0})), nullptr);
  ASSERT_NE(cache.find(signature_of({9999})), nullptr);
  cache.forget(signature_of({9999}));
  EXPECT_EQ(cache.find(signature_of({9999})), nullptr);
  cache.forget(signature_of({9999}));
}

}  // namespace
}  // namespace pscloud

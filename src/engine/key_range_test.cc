#include "engine/key_range.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <vector>

namespace pscloud {
namespace {

TEST(KeyRange, MixedKeysAreTheDocumentedOnes) {
  // docs/wire-format.md; from a second program, with Python's unbounded integers.
  EXPECT_EQ(mix_key(0), 0u);
  EXPECT_EQ(mix_key(1), 0xb456bcfc34c2cb2cu);
  EXPECT_EQ(mix_key(2), 0x3abf2a20650683e7u);
  EXPECT_EQ(mix_key(12345678901234567), 0xa468f099cb11400bu);
  EXPECT_EQ(mix_key(UINT64_MAX), 0x64b5720b4b825f21u);
}

RC_GTEST_PROP(KeyRange, UnmixUndoesMix, (uint64_t key)) {
  RC_ASSERT(unmix_key(mix_key(key)) == key);
  RC_ASSERT(mix_key(unmix_key(key)) == key);
}

TEST(KeyRange, OwnersHoldTheShardsBetweenTheirCuts) {
  for (uint32_t owners = 1; owners <= kShards; ++owners) {
    for (uint32_t owner = 0; owner < owners; ++owner) {
      const uint32_t first = kShards * owner / owners;
      const uint32_t last = kShards * (owner + 1) / owners;
      ASSERT_LT(first, last);
      for (uint32_t shard = first; shard < last; ++shard) ASSERT_EQ(owner_of_shard(shard, owners), owner) << owners;
    }
  }
}

// The sum of (seen - expected)^2 / expected over equal bins has mean bins-1 and variance 2*(bins-1) for random keys.
double chi_square(const std::vector<uint64_t>& seen, uint64_t total) {
  const double expected = static_cast<double>(total) / static_cast<double>(seen.size());
  double sum = 0;
  for (const uint64_t count : seen) {
    const double off = static_cast<double>(count) - expected;
    sum += off * off / expected;
  }
  return sum;
}

TEST(KeyRange, ConsecutiveIdsAndStridesSpreadOverShardsLikeRandomKeys) {
  constexpr uint64_t kKeys = 100000;
  const double bound = 255 + 5 * std::sqrt(2.0 * 255);
  for (const uint64_t stride : {uint64_t{1}, uint64_t{2}, uint64_t{8}, uint64_t{1000}, uint64_t{1} << 20,
                                uint64_t{1} << 40, (uint64_t{1} << 32) + 1}) {
    std::vector<uint64_t> shards(kShards), below(kShards);
    for (uint64_t i = 0; i < kKeys; ++i) {
      ++shards[shard_of(i * stride)];
      ++below[mix_key(i * stride) >> 48 & 255];  // what a table cuts into segments
    }
    EXPECT_LT(chi_square(shards, kKeys), bound) << stride;
    EXPECT_LT(chi_square(below, kKeys), bound) << stride;
  }
}

TEST(KeyRange, FewIdsStillReachEveryOwner) {
  for (const uint32_t owners : {2u, 3u, 8u}) {
    std::vector<uint64_t> seen(owners);
    for (Key key = 0; key < 100; ++key) ++seen[owner_of(key, owners)];
    for (const uint64_t count : seen) EXPECT_GT(count, 100u / owners / 3) << owners;
  }
}

RC_GTEST_PROP(KeyRange, DenseRangesCoverEveryRowOnceAndEvenly, (uint64_t rows)) {
  const auto owners = *rc::gen::inRange<uint32_t>(1, 300);
  uint64_t next = 0, least = UINT64_MAX, most = 0;
  for (uint32_t owner = 0; owner < owners; ++owner) {
    const auto [first, last] = dense_range(rows, owner, owners);
    RC_ASSERT(first == next);
    RC_ASSERT(first <= last);
    least = std::min(least, last - first);
    most = std::max(most, last - first);
    next = last;
  }
  RC_ASSERT(next == rows);
  RC_ASSERT(most - least <= 1u);
}

}  // namespace
}  // namespace pscloud

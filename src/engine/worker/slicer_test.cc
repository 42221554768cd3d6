#include "engine/worker/slicer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/random.h"
#include "engine/key_range.h"

namespace pscloud {
namespace {

std::shared_ptr<const TableSpec> sparse(uint32_t width) {
  TableSpec spec;
  spec.name = "w";
  spec.width = width;
  return std::make_shared<const TableSpec>(spec);
}

std::shared_ptr<const TableSpec> dense(uint32_t width, uint64_t rows) {
  TableSpec spec;
  spec.name = "w";
  spec.kind = TableKind::kDense;
  spec.width = width;
  spec.rows = rows;
  return std::make_shared<const TableSpec>(spec);
}

// Every float of the request is another number, so that a row in the wrong place is seen.
std::vector<float> numbered(size_t count) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i);
  return values;
}

size_t part_bytes(const Part& part) { return part.keys.size() * sizeof(Key) + part.values.size() * sizeof(float); }

// A server that gives back what was pushed: pull(push(x)) must be x, whatever the cut.
void answer_with_own_values(const std::vector<Slice>& slices) {
  for (const Slice& slice : slices) slice.sink({slice.part.values, nullptr});
}

// With the values put together, as they are sent.
std::vector<Slice> loaded(std::vector<Slice> slices) {
  for (Slice& slice : slices) {
    if (slice.value_bytes() > 0) slice.load(Buffer(slice.value_bytes()));
  }
  return slices;
}

std::vector<Key> random_keys(Random& random, size_t count) {
  std::set<Key> keys = {0, UINT64_MAX};
  while (keys.size() < count) keys.insert(random.next());
  return {keys.begin(), keys.end()};
}

TEST(Slicer, SparseSlicesAreTheRequestCutByOwner) {
  Random random(1);
  for (int round = 0; round < 50; ++round) {
    const auto owners = static_cast<uint32_t>(1 + random.below(8));
    const auto width = static_cast<uint32_t>(1 + random.below(4));
    const auto keys = random_keys(random, 2 + random.below(300));
    const auto values = numbered(keys.size() * width);
    std::vector<float> out(values.size(), -1);
    const auto slices = loaded(slice_keys(FrameType::kPushPull, 9, sparse(width), owners, keys, values, out));
    std::vector<Key> all;
    for (const Slice& slice : slices) {
      EXPECT_TRUE(std::ranges::is_sorted(slice.part.keys));
      EXPECT_EQ(slice.part.count, slice.part.keys.size());
      EXPECT_EQ(slice.part.values.size(), slice.part.count * width);
      EXPECT_EQ(slice.part.table, 9u);
      for (const Key key : slice.part.keys) EXPECT_EQ(owner_of(key, owners), slice.owner);
      all.insert(all.end(), slice.part.keys.begin(), slice.part.keys.end());
    }
    std::ranges::sort(all);
    EXPECT_EQ(all, keys);
    answer_with_own_values(slices);
    EXPECT_EQ(out, values);
  }
}

TEST(Slicer, DenseKeysAreCutAtTheOwnersRanges) {
  Random random(2);
  for (int round = 0; round < 50; ++round) {
    const auto owners = static_cast<uint32_t>(1 + random.below(8));
    const uint64_t rows = 1 + random.below(100);
    std::vector<Key> keys;
    for (uint64_t row = 0; row < rows; ++row) {
      if (random.chance(0.5)) keys.push_back(row);
    }
    const auto values = numbered(keys.size() * 2);
    std::vector<float> out(values.size(), -1);
    const auto slices = loaded(slice_keys(FrameType::kPushPull, 9, dense(2, rows), owners, keys, values, out));
    size_t total = 0;
    for (const Slice& slice : slices) {
      const auto [first, last] = dense_range(rows, slice.owner, owners);
      for (const Key key : slice.part.keys) EXPECT_TRUE(key >= first && key < last);
      total += slice.part.keys.size();
    }
    EXPECT_EQ(total, keys.size());
    answer_with_own_values(slices);
    EXPECT_EQ(out, values);
  }
}

TEST(Slicer, RangesAreCutAtTheOwnersRanges) {
  Random random(3);
  for (int round = 0; round < 100; ++round) {
    const auto owners = static_cast<uint32_t>(1 + random.below(8));
    const uint64_t rows = 1 + random.below(100);
    const uint64_t first = random.below(rows);
    const uint64_t count = random.below(rows - first + 1);
    const auto values = numbered(count * 3);
    std::vector<float> out(values.size(), -1);
    const auto slices = loaded(slice_rows(FrameType::kPushPull, 9, dense(3, rows), owners, first, count, values, out));
    uint64_t next = first;
    for (const Slice& slice : slices) {
      const auto [begin, end] = dense_range(rows, slice.owner, owners);
      EXPECT_TRUE(slice.part.range);
      EXPECT_TRUE(slice.part.keys.empty());
      EXPECT_EQ(slice.part.first, next);
      EXPECT_TRUE(slice.part.first >= begin && slice.part.first + slice.part.count <= end);
      next += slice.part.count;
    }
    EXPECT_EQ(next, first + count);
    answer_with_own_values(slices);
    EXPECT_EQ(out, values);
  }
}

TEST(Slicer, PartsHaveAboutAMebibyte) {
  Random random(4);
  const auto keys = random_keys(random, 600'000);
  const std::vector<float> values(keys.size());
  for (const uint32_t owners : {1u, 3u}) {
    const auto slices = loaded(slice_keys(FrameType::kPush, 9, sparse(1), owners, keys, values, {}));
    EXPECT_GE(slices.size(), keys.size() * 12 / (1 << 20));
    EXPECT_LE(slices.size(), keys.size() * 12 / (1 << 20) + 2 * owners);
    for (const Slice& slice : slices) EXPECT_LE(part_bytes(slice.part), 1u << 20);
  }
  const std::vector<float> rows(1 << 20);
  for (const Slice& slice : slice_rows(FrameType::kPush, 9, dense(4, 1 << 18), 2, 0, 1 << 18, rows, {})) {
    EXPECT_LE(part_bytes(slice.part), 1u << 20);
  }
}

TEST(Slicer, ARowWiderThanAPartGoesAlone) {
  const std::vector<float> values(3 * 65536);
  const auto slices = loaded(slice_rows(FrameType::kPush, 9, dense(65536, 100), 1, 0, 3, values, {}));
  ASSERT_EQ(slices.size(), 1u);  // three of a quarter of a mebibyte
  EXPECT_EQ(slices[0].part.count, 3u);
}

TEST(Slicer, TheLargestKeyIsAKeyLikeAnyOther) {
  const std::vector<Key> keys = {UINT64_MAX};
  std::vector<float> out(1);
  for (const uint32_t owners : {1u, 2u, 5u}) {
    const auto slices = loaded(slice_keys(FrameType::kPull, 9, sparse(1), owners, keys, {}, out));
    ASSERT_EQ(slices.size(), 1u);
    EXPECT_EQ(slices[0].owner, owner_of(UINT64_MAX, owners));
    EXPECT_EQ(slices[0].part.keys, keys);
    slices[0].sink({{5.0f}, nullptr});
    EXPECT_EQ(out[0], 5.0f);
  }
}

TEST(Slicer, TheLastRowOfAHugeTableHasAnOwner) {
  const uint64_t rows = UINT64_MAX / 4;
  const std::vector<float> values(2);
  const auto slices = loaded(slice_rows(FrameType::kPush, 9, dense(1, rows), 7, rows - 2, 2, values, {}));
  ASSERT_EQ(slices.size(), 1u);
  EXPECT_EQ(slices[0].owner, 6u);
}

TEST(Slicer, NothingGivesNoSlices) {
  EXPECT_TRUE(slice_keys(FrameType::kPush, 9, sparse(1), 3, {}, {}, {}).empty());
  EXPECT_TRUE(slice_rows(FrameType::kPush, 9, dense(1, 5), 3, 2, 0, {}, {}).empty());
}

TEST(Slicer, APushHasNoSinkAndAPullNoValues) {
  const std::vector<Key> keys = {1, 2};
  const std::vector<float> values(2);
  std::vector<float> out(2);
  for (const Slice& slice : slice_keys(FrameType::kPush, 9, sparse(1), 2, keys, values, {})) EXPECT_FALSE(slice.sink);
  for (const Slice& slice : slice_keys(FrameType::kPull, 9, sparse(1), 2, keys, {}, out)) {
    EXPECT_TRUE(slice.part.values.empty());
  }
}

}  // namespace
}  // namespace pscloud

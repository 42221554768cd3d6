#include "data/block_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/bytes.h"
#include "base/hash.h"
#include "base/log.h"
#include "io/memory_store.h"

namespace pscloud {
namespace {

ReadPart some_rows(bool values, bool groups) {
  ReadPart read;
  read.bad_lines = 3;
  read.rows.keys = {1, UINT64_MAX, 7};
  if (values) read.rows.values = {0.5f, 1, -2};
  if (groups) read.rows.groups = {1, 1, 65535};
  read.rows.labels = {1, -1, 1};
  read.rows.ends = {2, 2, 3};
  return read;
}

void expect_same(const RowBlock& a, const RowBlock& b) {
  EXPECT_EQ(a.labels, b.labels);
  EXPECT_EQ(a.ends, b.ends);
  EXPECT_EQ(a.keys, b.keys);
  EXPECT_EQ(a.values, b.values);
  EXPECT_EQ(a.groups, b.groups);
}

TEST(BlockCache, BringsBackWhatItWasGiven) {
  MemoryStore store({{"data/part-1", "some text"}}, 1 << 20);
  BlockCache cache(store, "cache/x_", "LIBSVM");
  const FilePart part{.uri = "data/part-1", .begin = 3};
  EXPECT_FALSE(cache.load(part).value());
  for (const bool values : {false, true}) {
    for (const bool groups : {false, true}) {
      const ReadPart read = some_rows(values, groups);
      ASSERT_TRUE(cache.save(part, cache.identity_of(part).value(), read));
      const auto found = cache.load(part).value();
      ASSERT_TRUE(found);
      expect_same(found->rows, read.rows);
      EXPECT_EQ(found->bad_lines, 3u);
    }
  }
  EXPECT_THAT(cache.file_of(part), testing::MatchesRegex("cache/x_part-1\\.[0-9a-f]{16}"));
  EXPECT_NE(cache.file_of(part), cache.file_of({.uri = "data/part-1"}));
  EXPECT_NE(cache.file_of(part), cache.file_of({.uri = "other/part-1", .begin = 3}));
}

TEST(BlockCache, IsNotUsedForAnotherSourceOrAnotherWayToReadIt) {
  MemoryStore store({{"a", "some text"}}, 1 << 20);
  const FilePart part{.uri = "a"};
  BlockCache made(store, "c_", "LIBSVM");
  ASSERT_TRUE(made.save(part, made.identity_of(part).value(), some_rows(true, true)));
  EXPECT_TRUE(BlockCache(store, "c_", "LIBSVM").load(part).value());
  EXPECT_FALSE(BlockCache(store, "c_", "CRITEO").load(part).value());
  const auto output = store.create("a").value();
  ASSERT_TRUE(output->write("SOME TEXT"));
  ASSERT_TRUE(output->commit());
  EXPECT_FALSE(BlockCache(store, "c_", "LIBSVM").load(part).value());
}

TEST(BlockCache, DamageIsNoticed) {
  set_log_level(LogLevel::kSilent);
  const std::string good = encode_block(some_rows(true, true), "id");
  for (size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 4);
    EXPECT_FALSE(decode_block(bad, "id")) << i;
    EXPECT_FALSE(decode_block(good.substr(0, i), "id")) << i;
  }
  EXPECT_TRUE(decode_block(good, "id").value());
  EXPECT_FALSE(decode_block(good, "other").value());

  MemoryStore store({{"a", "some text"}}, 1 << 20);
  BlockCache cache(store, "c_", "LIBSVM");
  const auto output = store.create(cache.file_of({.uri = "a"})).value();
  ASSERT_TRUE(output->write("nonsense"));
  ASSERT_TRUE(output->commit());
  EXPECT_FALSE(cache.load({.uri = "a"}).value());
  set_log_level(LogLevel::kInfo);
}

// Whoever can make the checksum right can still not make it read outside.
RC_GTEST_PROP(BlockCache, NonsenseWithARightChecksumIsHarmless, (const std::vector<uint8_t>& nonsense)) {
  std::string bytes = encode_block({}, "id");
  const size_t body = 16;
  bytes.resize(body);
  bytes.append(nonsense.begin(), nonsense.end());
  const uint64_t hash = hash64(bytes_of(std::string_view(bytes).substr(body)));
  std::memcpy(bytes.data() + 8, &hash, sizeof hash);
  (void)decode_block(bytes, "id");
}

}  // namespace
}  // namespace pscloud

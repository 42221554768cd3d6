#include "data/block_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/log.h"
#include "io/memory_store.h"

namespace pscloud {
namespace {

using testing::ElementsAre;

class BlockCacheTest : public testing::Test {
 protected:
  BlockCacheTest() : store_({{"data/part-1", "some text"}}, 1 << 20), files_({}, 1 << 20) {
    set_log_level(LogLevel::kSilent);
  }
  ~BlockCacheTest() override { set_log_level(LogLevel::kInfo); }

  BlockCache cache(const std::string& reading = "LIBSVM") { return {store_, files_, "cache/x_", reading}; }

  void save(const FilePart& part, const std::vector<float>& labels) {
    BlockWriter writer = cache().create(part).value();
    for (const float label : labels) {
      RowBlock block;
      block.keys = {7};
      block.end_row(label);
      NumberedRows rows;
      rows.assign(slice_of(block, 0, 1), block.keys, std::vector<uint32_t>{0});
      ASSERT_TRUE(writer.write(rows));
    }
    ReadSummary summary{.stored_bytes = 9, .bad = {}};
    summary.bad.add(3, "no number");
    summary.bad.count = 20;
    ASSERT_TRUE(writer.commit(summary));
  }

  // Labels of all blocks.
  Result<std::vector<float>> load(BlockReader& reader) {
    std::vector<float> labels;
    NumberedRows rows;
    while (TRY(reader.next(rows))) labels.push_back(rows.rows().labels[0]);
    return labels;
  }

  MemoryStore store_;
  MemoryStore files_;
  const FilePart part_{.uri = "data/part-1", .begin = 3};
};

TEST_F(BlockCacheTest, BringsBackWhatItWasGiven) {
  EXPECT_FALSE(cache().open(part_).value());
  save(part_, {1, -1, 1});
  auto found = cache().open(part_).value();
  ASSERT_TRUE(found);
  EXPECT_THAT(load(*found).value(), ElementsAre(1, -1, 1));
  EXPECT_EQ(found->summary().stored_bytes, 9u);
  EXPECT_EQ(found->summary().bad.count, 20u);
  ASSERT_EQ(found->summary().bad.first.size(), 1u);
  EXPECT_EQ(found->summary().bad.first[0].reason, "no number");
  EXPECT_THAT(cache().file_of(part_), testing::MatchesRegex("cache/x_part-1\\.[0-9a-f]{16}"));
  EXPECT_NE(cache().file_of(part_), cache().file_of({.uri = "data/part-1"}));
  EXPECT_NE(cache().file_of(part_), cache().file_of({.uri = "other/part-1", .begin = 3}));
}

TEST_F(BlockCacheTest, IsNotUsedForAnotherSourceOrAnotherWayToReadIt) {
  save(part_, {1});
  EXPECT_TRUE(cache().open(part_).value());
  EXPECT_FALSE(cache("CRITEO").open(part_).value());
  store_.put("data/part-1", "SOME TEXT");
  EXPECT_FALSE(cache().open(part_).value());
}

TEST_F(BlockCacheTest, IsWhatTheSourceWasBeforeItWasRead) {
  BlockWriter writer = cache().create(part_).value();
  store_.put("data/part-1", "SOME TEXT");
  ASSERT_TRUE(writer.commit({}));
  EXPECT_FALSE(cache().open(part_).value());
}

TEST_F(BlockCacheTest, DamageIsNoticedAndNothingWrongIsGiven) {
  save(part_, {1, -1});
  const std::string file = cache().file_of(part_);
  const std::string good = files_.get(file);
  for (size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 4);
    for (const std::string& text : {bad, good.substr(0, i)}) {
      files_.put(file, text);
      auto found = cache().open(part_).value();
      if (!found) continue;
      EXPECT_EQ(load(*found).error().code, Code::kCorrupt) << i;
    }
  }
}

}  // namespace
}  // namespace pscloud

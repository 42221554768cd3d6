#include "engine/table/table_sketch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.h"

namespace pscloud {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::unique_ptr<TableStore> sketch(uint64_t cells, uint32_t hashes = 2, uint64_t bytes_max = 1 << 30) {
  TableSpec spec{.name = "counts", .kind = TableKind::kSketch, .rows = cells};
  spec.hashes = hashes;
  auto made = TableStore::make(spec, UpdaterCatalog(), 0, cells, bytes_max);
  EXPECT_TRUE(made) << made.error().message;
  return *std::move(made);
}

// Values of dmlc's parameter server.
TEST(SketchTable, HashesAsTheOriginal) {
  const auto expect = [](Key key, uint32_t first, uint32_t step) {
    EXPECT_EQ(sketch_probes(key).first, first) << key;
    EXPECT_EQ(sketch_probes(key).step, step) << key;
  };
  expect(0, 1901488498, 884553899);
  expect(1, 3074456014, 1021795232);
  expect(2, 3636564896, 3385879648);
  expect(12345678901234567, 950381349, 3583155282);
  expect(UINT64_MAX, 716976191, 404723038);
}

TEST(SketchTable, CountsUpToItsMost) {
  const auto table = sketch(1000);
  const std::vector<Key> keys = {1, UINT64_MAX};
  std::vector<float> out(2);
  ASSERT_TRUE(table->push_pull(keys, std::vector<float>{3, 200}, out));
  EXPECT_THAT(out, ElementsAre(3, 200));
  ASSERT_TRUE(table->push(keys, std::vector<float>{1e9f, 200}));
  ASSERT_TRUE(table->pull(keys, out));
  EXPECT_THAT(out, ElementsAre(254, 254));
  EXPECT_EQ(table->bytes(), 1000u);
}

TEST(SketchTable, IsNeverTooLowAndSeldomTooHigh) {
  const auto table = sketch(40000);
  Random random(1);
  std::vector<Key> keys;
  std::vector<float> counts;
  for (Key key = 0; key < 10000; ++key) {
    keys.push_back(key << 40 | key);
    counts.push_back(static_cast<float>(1 + random.below(5)));
  }
  ASSERT_TRUE(table->push(keys, counts));
  std::vector<float> out(keys.size());
  ASSERT_TRUE(table->pull(keys, out));
  int wrong = 0;
  for (size_t i = 0; i < keys.size(); ++i) {
    EXPECT_GE(out[i], counts[i]);
    wrong += out[i] > counts[i] ? 1 : 0;
  }
  EXPECT_LT(wrong, 2500);
  EXPECT_GT(wrong, 100);  // or it is no sketch
}

TEST(SketchTable, RefusesWhatIsNoCount) {
  const auto table = sketch(1000);
  const std::vector<Key> keys = {1, 2};
  EXPECT_THAT(table->push(keys, std::vector<float>{1, -1}).error().message, HasSubstr("table counts: a count of -1"));
  EXPECT_THAT(table->push(keys, std::vector<float>{1, NAN}).error().message, HasSubstr("a count of nan"));
  EXPECT_FALSE(table->push(keys, std::vector<float>{1}));
  EXPECT_FALSE(table->push(std::vector<Key>{2, 1}, std::vector<float>{1, 1}));
  EXPECT_THAT(table->pull_range(0, {}).error().message, HasSubstr("no rows"));
  std::vector<float> out(2);
  ASSERT_TRUE(table->pull(keys, out));
  EXPECT_THAT(out, ElementsAre(0, 0));
}

TEST(SketchTable, IsTheSameAfterItWasWrittenDownAndSet) {
  TableSpec spec{.name = "counts", .kind = TableKind::kSketch, .rows = 5000};
  spec.hashes = 2;
  SketchTable table(spec, 1000, 1001);
  SketchTable copy(spec, 1000, 1001);
  std::vector<Key> keys;
  std::vector<float> counts;
  for (Key key = 0; key < 40; ++key) {
    keys.push_back(key * 77);
    counts.push_back(static_cast<float>(key * 7));
  }
  ASSERT_TRUE(table.push(keys, counts, nullptr));
  uint64_t scans = 0;
  for (uint64_t first = 0;; ++scans) {
    const ScannedRows rows = table.scan(first, 2, ScanKind::kState);
    if (rows.next == first) break;
    first = rows.next;
    for (const Key key : rows.keys) EXPECT_TRUE(key >= 1000 && key < 2001) << key;
    ASSERT_TRUE(copy.set(rows.keys, rows.floats, ScanKind::kState));
  }
  EXPECT_EQ(scans, 3u);  // of six rows
  std::vector<float> out(keys.size());
  std::vector<float> copied(keys.size());
  ASSERT_TRUE(table.pull(keys, out, nullptr));
  ASSERT_TRUE(copy.pull(keys, copied, nullptr));
  EXPECT_EQ(out, copied);
  EXPECT_EQ(table.scan(0, 100, ScanKind::kState), copy.scan(0, 100, ScanKind::kState));
  EXPECT_TRUE(SketchTable(spec, 0, 1000).scan(0, 100, ScanKind::kState).keys.empty());  // zeros need no room

  const std::vector<float> row(SketchTable::kFloatsInRow);
  EXPECT_FALSE(copy.set(std::vector<Key>{999}, row, ScanKind::kState));
  EXPECT_FALSE(copy.set(std::vector<Key>{1001}, row, ScanKind::kState));
  EXPECT_FALSE(copy.set(std::vector<Key>{2152}, row, ScanKind::kState));
  EXPECT_FALSE(copy.set(std::vector<Key>{1000}, std::vector<float>(row.size(), 0.5f), ScanKind::kState));
  EXPECT_FALSE(copy.set(std::vector<Key>{1000}, std::vector<float>(row.size(), 1 << 24), ScanKind::kState));
  EXPECT_FALSE(copy.set(std::vector<Key>{1000}, std::vector<float>{1}, ScanKind::kAll));
}

TEST(SketchTable, IsWithinItsLimit) {
  TableSpec spec{.name = "counts", .kind = TableKind::kSketch, .rows = 1000};
  spec.hashes = 2;
  EXPECT_THAT(TableStore::make(spec, UpdaterCatalog(), 0, 1000, 999).error().message, HasSubstr("1000 cells"));
}

}  // namespace
}  // namespace pscloud

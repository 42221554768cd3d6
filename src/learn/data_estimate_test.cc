#include "learn/data_estimate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "data/click_log.h"
#include "data/text_writer.h"
#include "io/memory_store.h"
#include "io/test_compress.h"

namespace pscloud {
namespace {

using testing::HasSubstr;

std::string log_text(int examples) {
  ClickLog log({.counts = 1, .categories = 4, .keys = 400});
  RowBlock block;
  for (int i = 0; i < examples; ++i) log.next(block);
  std::string text;
  EXPECT_TRUE(append_text(ExampleFormat::kLibsvm, slice_of(block, 0, block.rows()), 0, text));
  return text;
}

Result<DataEstimate> estimate(MemoryStore& store, const DataSelection& selection = {},
                              uint64_t sample_bytes = 16 << 20) {
  const std::vector<std::string> patterns{"data/.*"};
  return estimate_data(store, patterns,
                       {.selection = selection, .workers = 2, .minibatch = 100, .sample_bytes = sample_bytes});
}

TEST(DataEstimate, SmallFilesAreCountedAsTheyAre) {
  MemoryStore store({{"data/a", log_text(3000)}, {"data/b", log_text(1000)}}, 1 << 20);
  const DataEstimate found = estimate(store).value();
  EXPECT_EQ(found.files, 2u);
  EXPECT_NEAR(static_cast<double>(found.sampled), 4000, 300);  // a piece ends with its file
  EXPECT_NEAR(found.examples, 4000, 100);
  EXPECT_EQ(found.features, 5);
  EXPECT_NEAR(found.keys, 400, 30);
  EXPECT_GT(found.minibatch_keys, 50);
  EXPECT_LT(found.minibatch_keys, 300);
  EXPECT_NEAR(found.worker_keys, 400, 40);
  EXPECT_TRUE(found.has_values);
  EXPECT_FALSE(found.has_groups);
}

// Two workers have each about half of the examples, and not the keys of all.
TEST(DataEstimate, OfLittleDataWithManyKeysAWorkerHasItsOwn) {
  ClickLog log({.counts = 1, .categories = 20, .keys = 1000000});
  std::string text;
  std::set<Key> of_half;
  std::set<Key> of_part;
  constexpr int kExamples = 4000;
  for (int i = 0; i < kExamples; ++i) {
    RowBlock block;
    log.next(block);
    if (i < kExamples / 2) of_half.insert(block.keys.begin(), block.keys.end());
    if (i < kExamples / 3) of_part.insert(block.keys.begin(), block.keys.end());
    EXPECT_TRUE(append_text(ExampleFormat::kLibsvm, slice_of(block, 0, 1), 0, text));
  }
  // Small data are cut into parts of 256 KB: a minibatch has no more examples than a part.
  ASSERT_GT(text.size(), size_t{2} << 18);
  ASSERT_LT(text.size(), size_t{3} << 18);
  MemoryStore store({{"data/a", text}}, 1 << 20);
  const std::vector<std::string> patterns{"data/.*"};
  const auto of_workers = [&](int workers) {
    return estimate_data(store, patterns, {.workers = workers, .minibatch = kExamples}).value();
  };
  const DataEstimate found = of_workers(2);
  EXPECT_EQ(found.parts, 3);
  EXPECT_NEAR(found.worker_keys / static_cast<double>(of_half.size()), 1, 0.05);
  EXPECT_NEAR(found.minibatch, kExamples / 3.0, 10);
  EXPECT_NEAR(found.minibatch_keys / static_cast<double>(of_part.size()), 1, 0.05);
  // A fourth worker would get nothing.
  EXPECT_EQ(of_workers(4).worker_keys, of_workers(3).worker_keys);
}

TEST(DataEstimate, OfLargeFilesSomePiecesTellTheRest) {
  MemoryStore store({{"data/a", log_text(20000)}}, 1 << 20);
  const DataEstimate found = estimate(store, {}, 200000).value();
  EXPECT_LT(found.sampled, 10000u);
  EXPECT_NEAR(found.examples, 20000, 1000);
  EXPECT_NEAR(found.keys, 401, 20);
}

TEST(DataEstimate, PackedFilesAreReadFromTheirBeginning) {
  MemoryStore store({{"data/a", gzip(log_text(5000))}, {"data/b", gzip(log_text(5000))}}, 1 << 20);
  EXPECT_NEAR(estimate(store).value().examples, 10000, 500);
}

TEST(DataEstimate, SelectionsCount) {
  MemoryStore store({{"data/a", log_text(1000)}, {"data/b", log_text(1000)}, {"data/c", log_text(1000)}}, 1 << 20);
  EXPECT_NEAR(estimate(store, {.begin = 500, .end = 700, .replica = 3}).value().examples, 600, 1);
  EXPECT_NEAR(estimate(store, {.lines_per_file_max = 10}).value().examples, 30, 1);
  EXPECT_EQ(estimate(store, {.files_per_worker_max = 1}).value().files, 2u);
}

TEST(DataEstimate, FilesWithoutExamplesAreAMistake) {
  MemoryStore store({{"data/a", std::string("\n\n")}});
  EXPECT_THAT(estimate(store).error().message, HasSubstr("no examples"));
}

}  // namespace
}  // namespace pscloud

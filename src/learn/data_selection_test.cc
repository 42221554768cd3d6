#include "learn/data_selection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "data/example_reader.h"
#include "engine/testing_cluster.h"
#include "io/memory_store.h"
#include "io/recordio.h"
#include "io/test_compress.h"
#include "io/watched_store.h"
#include "learn/checkpoint_files.h"

namespace pscloud {
namespace {

using testing::ElementsAre;
using testing::ElementsAreArray;

const std::string kThreeFiles = "data/.*";

// Examples 0 to 9 by their labels, in three files, one of them packed; with lines that do not count.
MemoryStore three_files() {
  return MemoryStore({{"data/a", std::string("0\n1\n\n2\n3\n")},
                      {"data/b", gzip("4\n5\n")},
                      {"data/c", std::string("6\nx\n7\n \n8")}});  // the bad line counts
}

// The labels of all examples that are selected, read in parts.
std::vector<float> labels_of(Worker& worker, MemoryStore& store, std::span<const SelectedFile> files,
                             ExampleFormat format) {
  std::vector<float> labels;
  ExampleReader reader(store, make_parser(format, true));
  const std::vector<std::string> items = cut_into_items(worker, store, files, "training_data").value();
  for (const std::string& item : items) {
    EXPECT_TRUE(reader.open(part_of_text(item).value()));
    const RowSlice rows = reader.next(1000).value();
    labels.insert(labels.end(), rows.labels.begin(), rows.labels.end());
  }
  return labels;
}

class DataSelectionTest : public testing::Test {
 protected:
  // As several workers see it, which must be the same.
  std::vector<float> select(MemoryStore& store, const DataSelection& selection,
                            ExampleFormat format = ExampleFormat::kLibsvm) {
    const std::vector<std::string> patterns{kThreeFiles};
    const TestingCluster cluster({.workers = 2});
    std::vector<float> labels[2];
    std::string refusals[2];
    cluster.run_workers([&](Worker& worker) {
      const auto files = select_files(worker, store, patterns, format, selection, "training_data");
      if (!files) {
        refusals[worker.rank()] = files.error().message;
        return;
      }
      labels[worker.rank()] = labels_of(worker, store, *files, format);
    });
    EXPECT_EQ(labels[0], labels[1]);
    EXPECT_EQ(refusals[0], refusals[1]);
    refusal_ = refusals[0];
    return labels[0];
  }
  std::string refusal_;
};

TEST_F(DataSelectionTest, RangesCountOverTheFilesInTheirOrder) {
  MemoryStore store = three_files();
  EXPECT_THAT(select(store, {}), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8));
  EXPECT_THAT(select(store, {.begin = 2, .end = 5}), ElementsAre(2, 3, 4));
  EXPECT_THAT(select(store, {.begin = 1, .end = 3}), ElementsAre(1, 2));
  EXPECT_THAT(select(store, {.begin = 5}), ElementsAre(5, 6, 7, 8));
  EXPECT_THAT(select(store, {.begin = 7, .end = 9}), ElementsAre(7));
  EXPECT_THAT(select(store, {.begin = 4, .end = 6}), ElementsAre(4, 5));
  EXPECT_THAT(select(store, {.begin = 9, .end = 1000}), ElementsAre(8));
}

TEST_F(DataSelectionTest, LimitsComeBeforeTheRange) {
  MemoryStore store = three_files();
  EXPECT_THAT(select(store, {.lines_per_file_max = 2}), ElementsAre(0, 1, 4, 5, 6));
  EXPECT_THAT(select(store, {.lines_per_file_max = 3, .begin = 2, .end = 7}), ElementsAre(2, 4, 5, 6));
  EXPECT_THAT(select(store, {.files_per_worker_max = 1}), ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT(select(store, {.files_per_worker_max = 1, .lines_per_file_max = 1}), ElementsAre(0, 4));
}

TEST_F(DataSelectionTest, RecordsAreChosenLikeLines) {
  std::string text;
  for (const char label : {'\x3f', '\x40', '\xbf'}) {  // 1, 4 and -1, as the upper bytes of floats
    append_record(std::string("\x0a\x06\x1a\x04\0\0\x80", 7) + label, text);
  }
  MemoryStore store({{"data/a", text}, {"data/b", gzip(text)}});
  EXPECT_THAT(select(store, {.begin = 1, .end = 5}, ExampleFormat::kProto), ElementsAre(4, -1, 1, 4));
}

TEST_F(DataSelectionTest, ARangeBehindTheLastExampleIsAMistake) {
  MemoryStore store = three_files();
  EXPECT_THAT(select(store, {.begin = 10}), ElementsAre());
  EXPECT_EQ(refusal_, "training_data.range begins at 10, but there are 10 examples, counted from 0");
}

TEST(CutIntoItems, WorkersShareToLookWhichFilesCanBeCut) {
  constexpr size_t kFiles = 8;
  MemoryStore store;
  std::vector<SelectedFile> files;
  for (size_t i = 0; i < kFiles; ++i) {
    const std::string name = "f" + std::to_string(i);
    store.put(name, std::string(300'000, '1'));
    files.push_back({.info = store.stat(name).value()});
  }
  std::atomic<size_t> bytes = 0;
  WatchedStore watched(store, [&](size_t more) -> Result<> {
    bytes += more;
    return {};
  });
  const TestingCluster cluster({.workers = 3});
  cluster.run_workers([&](Worker& worker) {
    EXPECT_EQ(cut_into_items(worker, watched, files, "training_data").value().size(), 2 * kFiles);
  });
  EXPECT_EQ(bytes, 4 * kFiles);  // the beginning of each file, once
}

TEST(CutIntoItems, OneFileFeedsManyWorkersAndIsCutAlikeByARunThatIsResumed) {
  MemoryStore store;
  store.put("f", std::string(24'000'000, '1'));
  const std::vector<SelectedFile> files{{.info = store.stat("f").value()}};
  std::vector<std::string> items;
  TestingCluster({.workers = 20}).run_workers([&](Worker& worker) {
    const auto cut = cut_into_items(worker, store, files, "training_data").value();
    EXPECT_EQ(workers_cut_for(worker, "training_data").value(), 20u);
    if (worker.is_first()) items = cut;
  });
  EXPECT_EQ(items.size(), 80u);
  PS::LM::Checkpoint checkpoint;
  checkpoint.set_number(7);
  checkpoint.set_cut_for_workers(20);
  ASSERT_TRUE(write_manifest(store, "ck", checkpoint));
  CheckpointSettings resumed;
  resumed.folder = "ck";
  resumed.resume = true;
  TestingCluster({.workers = 2}).run_workers([&](Worker& worker) {
    EXPECT_EQ(cut_into_items(worker, store, files, "training_data", resumed).value(), items);
    EXPECT_EQ(cut_into_items(worker, store, files, "others").value().size(), 64u);
  });
}

TEST(ItemsOfPass, CopiesAndOrdersAreTheSameInEachRun) {
  const std::vector<std::string> items = {"a", "b", "c", "d", "e", "f"};
  EXPECT_THAT(items_of_pass(items, {}, 1), ElementsAreArray(items));
  EXPECT_THAT(items_of_pass(std::span(items).first(2), {.replica = 2}, 1), ElementsAre("a", "b", "a", "b"));
  const DataSelection shuffled{.replica = 2, .shuffle = true};
  const auto once = items_of_pass(items, shuffled, 1);
  EXPECT_EQ(once, items_of_pass(items, shuffled, 1));
  EXPECT_NE(once, items_of_pass(items, shuffled, 2));
  EXPECT_THAT(once, testing::UnorderedElementsAreArray(items_of_pass(items, {.replica = 2}, 1)));
}

}  // namespace
}  // namespace pscloud

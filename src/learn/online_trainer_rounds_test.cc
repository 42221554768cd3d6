// Synchronous online training as a job of several workers does it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "base/log.h"
#include "data/click_log.h"
#include "data/text_writer.h"
#include "engine/testing_cluster.h"
#include "io/memory_store.h"
#include "io/watched_store.h"
#include "learn/online_trainer.h"

namespace pscloud {
namespace {

using testing::HasSubstr;

std::string step_clicks(int examples, uint64_t seed) {
  ClickLog log({.counts = 3, .categories = 8, .keys = 400, .seed = seed});
  RowBlock block;
  for (int i = 0; i < examples; ++i) log.next(block);
  std::string text;
  EXPECT_TRUE(append_text(ExampleFormat::kLibsvm, slice_of(block, 0, block.rows()), 0, text));
  return text;
}

class OnlineRoundsTest : public testing::Test {
 protected:
  void SetUp() override { set_log_level(LogLevel::kSilent); }
  void TearDown() override { set_log_level(LogLevel::kInfo); }

  OnlineRoundsTest() {
    // Not a multiple of the workers, and of many lengths: some have nothing to do while others have.
    for (int i = 0; i < kFiles; ++i) store_.put(fmt::format("train/{}", i), step_clicks(kLeast + 150 * i, i));
    settings_.files = {"train/.*"};
    settings_.table = {.name = "weights", .updater = {"ftrl", {{"alpha", 0.1f}, {"beta", 1}, {"lambda1", 0.1f}}}};
    settings_.minibatch = 50;
    settings_.passes = 2;
    settings_.synchronous = true;
    settings_.model = {ModelFormat::kText, "model/m"};
  }

  Result<OnlineProgress> train(Worker& worker, FileStore& store, std::function<bool()> leaving = {}) {
    return OnlineTrainer(
               worker, store, nullptr, settings_, [](const OnlineProgress&) {}, std::move(leaving))
        .run();
  }

  // By three workers and two servers.
  std::string model() {
    const TestingCluster cluster({.servers = 2, .workers = 3});
    cluster.run_workers([&](Worker& worker) {
      const auto progress = train(worker, store_);
      ASSERT_TRUE(progress) << progress.error().message;
      EXPECT_EQ(progress->examples, 2 * kExamples);
      EXPECT_EQ(progress->repeated, 0u);
    });
    return store_.get("model/m_S0") + store_.get("model/m_S1");
  }

  static constexpr int kFiles = 7;
  static constexpr int kLeast = 30;
  static constexpr uint64_t kExamples = kFiles * kLeast + 150 * kFiles * (kFiles - 1) / 2;
  MemoryStore store_{{}, 1 << 20};
  OnlineSettings settings_;
};

TEST_F(OnlineRoundsTest, TwoRunsGiveTheSameBytes) {
  const std::string first = model();
  EXPECT_GT(first.size(), 1000u);
  EXPECT_EQ(model(), first);
}

TEST_F(OnlineRoundsTest, SoTheyDoWithDelayAndShuffledPartsAndSeldomFeaturesLeftOut) {
  settings_.max_delay = 2;
  settings_.selection.shuffle = true;
  settings_.tail.frequency = 4;
  settings_.tail_cells = 100'000;
  const std::string first = model();
  EXPECT_GT(first.size(), 1000u);
  EXPECT_EQ(model(), first);
}

TEST_F(OnlineRoundsTest, SoTheyDoWithEmbeddings) {
  EmbeddingSettings& embeddings = settings_.embeddings.emplace();
  embeddings.table = {.name = "embeddings",
                      .width = 4,
                      .updater = {"adagrad", {{"learning_rate", 0.05f}, {"epsilon", 1}}},
                      .initial = {-0.1f, 0.1f, 1}};
  embeddings.counts = TableSpec{.name = "embedding_counts"};
  embeddings.threshold = 5;
  embeddings.dropout = 0.2f;
  settings_.max_delay = 1;
  const std::string first = model();
  EXPECT_GT(first.size(), 2000u);
  EXPECT_EQ(model(), first);
}

TEST_F(OnlineRoundsTest, ThePartOfAWorkerThatDiesIsDoneByTheOthers) {
  settings_.passes = 1;
  const TestingCluster cluster({.servers = 2, .workers = 3});
  std::vector<std::jthread> threads;
  threads.emplace_back([&] {
    // Of this file, which is of the first round, it reads nothing.
    WatchedStore broken(store_, [](size_t) -> Result<> { return job_failed("gone"); });
    auto worker = cluster.worker(2);
    EXPECT_FALSE(train(*worker, broken));
  });
  for (const int rank : {0, 1}) {
    threads.emplace_back([&, rank] {
      const auto worker = cluster.worker(rank);
      const auto progress = train(*worker, store_);
      ASSERT_TRUE(progress) << progress.error().message;
      EXPECT_EQ(progress->examples, kExamples);
      EXPECT_EQ(progress->repeated, 0u);
      EXPECT_TRUE(worker->leave());
    });
  }
}

TEST_F(OnlineRoundsTest, AWorkerThatLeavesHasDoneItsPartAndTheOthersDoTheRest) {
  settings_.passes = 1;
  const TestingCluster cluster({.servers = 2, .workers = 3});
  std::vector<std::jthread> threads;
  for (const int rank : {0, 1, 2}) {
    threads.emplace_back([&, rank] {
      const auto worker = cluster.worker(rank);
      const auto progress = train(*worker, store_, [rank] { return rank == 1; });
      if (rank == 1) {
        EXPECT_THAT(progress.error().message, HasSubstr("its machine is taken away"));
        return;
      }
      ASSERT_TRUE(progress) << progress.error().message;
      EXPECT_EQ(progress->examples, kExamples);
      EXPECT_EQ(progress->repeated, 0u);
      EXPECT_TRUE(worker->leave());
    });
  }
}

}  // namespace
}  // namespace pscloud

// Batch training as a job of several workers does it.

#include "learn/batch_trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "base/log.h"
#include "base/mutex.h"
#include "data/block_cache.h"
#include "data/click_log.h"
#include "data/text_writer.h"
#include "engine/testing_cluster.h"
#include "io/memory_store.h"
#include "io/watched_store.h"

namespace pscloud {
namespace {

using testing::HasSubstr;

std::string grouped_clicks(int examples, uint64_t seed) {
  ClickLog log({.counts = 2, .categories = 5, .keys = 300, .seed = seed});
  RowBlock block;
  std::string text;
  for (int i = 0; i < examples; ++i) log.next(block);
  EXPECT_TRUE(append_text(ExampleFormat::kLibsvm, slice_of(block, 0, block.rows()), 0, text));
  return text;
}

// With features in blocks, and with all of them together.
class BatchTrainerTest : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override { set_log_level(LogLevel::kSilent); }
  void TearDown() override { set_log_level(LogLevel::kInfo); }

  BatchTrainerTest()
      : store_({{"train/a", grouped_clicks(1500, 1)},
                {"train/b", grouped_clicks(1500, 2)},
                {"bad", grouped_clicks(500, 1) + "1 3:x\n"}},
               1 << 20) {
    settings_.files = {"train/.*"};
    settings_.model = {ModelFormat::kText, "model/x"};
    settings_.descent.rule.lambda1 = 3;
    settings_.iterations = 200;
    settings_.epsilon = 1e-7;
    if (GetParam()) settings_.blocks_per_feature = 4;
  }

  // The last word of `workers` of a job of their own.
  BatchProgress train(int workers, int servers = 1) {
    const TestingCluster cluster({.servers = servers, .workers = workers});
    BatchProgress end;
    cluster.run_workers([&](Worker& worker) {
      const auto progress = run(worker, store_);
      ASSERT_TRUE(progress) << progress.error().message;
      MutexLock lock(mutex_);
      end = *progress;
    });
    return end;
  }

  Result<BatchProgress> run(
      Worker& worker, FileStore& store, std::function<bool()> cancelled = [] { return false; }) {
    const auto show = [this](const BatchProgress& one) {
      MutexLock lock(mutex_);
      shown_.push_back(one);
    };
    return BatchTrainer(worker, store, settings_, show, std::move(cancelled)).run();
  }

  std::string model(const std::string& name = "model/x_S0") {
    return read_all(**store_.open(name, {}), 1 << 20).value();
  }

  MemoryStore store_;
  BatchSettings settings_;
  Mutex mutex_;
  std::vector<BatchProgress> shown_ GUARDED_BY(mutex_);
};

TEST_P(BatchTrainerTest, ArrivesAtTheSameMinimumHoweverItIsShared) {
  const BatchProgress alone = train(1);
  EXPECT_TRUE(alone.converged);
  EXPECT_EQ(alone.examples, 3000u);
  EXPECT_GT(alone.nonzero, 10u);
  EXPECT_LT(alone.objective, 3000 * 0.67);
  EXPECT_THAT(model(), HasSubstr("\t"));
  const BatchProgress shared = train(3, 2);
  EXPECT_NEAR(shared.objective / alone.objective, 1, 1e-5);
  EXPECT_EQ(shared.keys, alone.keys);
  EXPECT_NEAR(static_cast<double>(shared.nonzero), static_cast<double>(alone.nonzero), 3);
}

TEST_P(BatchTrainerTest, TellsHowFarItIsWhileItLoadsAndIterates) {
  train(2);
  using Stage = BatchProgress::Stage;
  MutexLock lock(mutex_);
  ASSERT_EQ(shown_.front().stage, Stage::kLoading);  // at once; later ones may come in between
  const ReadProgress& reading = shown_.front().reading;
  EXPECT_GT(reading.examples, 0u);
  EXPECT_GT(reading.bytes, 0u);
  EXPECT_EQ(reading.bytes_all, store_.get("train/a").size() + store_.get("train/b").size());
  double iterated = 0;
  for (const BatchProgress& one : shown_) {
    if (one.stage == Stage::kIteration) {
      EXPECT_EQ(one.iterated, one.iteration + 1);
    }
    EXPECT_GE(one.iterated, iterated);
    iterated = one.iterated;
  }
  const bool in_blocks = GetParam();
  const auto told = std::ranges::count(shown_, Stage::kIterating, &BatchProgress::stage);
  EXPECT_EQ(told > 0, in_blocks);  // steps of all features together are too short for that
}

TEST_P(BatchTrainerTest, TwoRunsOfSeveralWorkersGiveTheSameBytes) {
  for (int i = 0; i < 5; ++i) store_.put(fmt::format("train/{}", i), grouped_clicks(100 + 40 * i, 10 + i));
  settings_.max_delay = 1;
  const auto bytes = [&] {
    const BatchProgress progress = train(3, 2);
    return fmt::format("{} {} ", progress.objective, progress.iteration) + model() + model("model/x_S1");
  };
  const std::string first = bytes();
  for (int run = 0; run < 2; ++run) EXPECT_EQ(bytes(), first);
}

// A key is of the group that it has in the last example of a worker; here it has another one at each.
TEST_P(BatchTrainerTest, SoTheyDoIfAKeyIsOfSeveralGroups) {
  for (const int group : {1, 2, 3}) {
    std::string text;
    for (int i = 0; i < 200; ++i) {
      text += fmt::format("{};{} {} {};\n", (i * i + group) % 3 == 0 ? 1 : -1, group, i % 20, 20 + i % 7);
    }
    store_.put(fmt::format("grouped/{}", group), text);
  }
  settings_.files = {"grouped/.*"};
  settings_.format = ExampleFormat::kSparseBinary;
  settings_.descent.rule.lambda1 = 0.1;
  settings_.random_order = false;
  const auto bytes = [&] {
    EXPECT_GT(train(3, 2).nonzero, 3u);
    return model() + model("model/x_S1");
  };
  const std::string first = bytes();
  for (int run = 0; run < 4; ++run) EXPECT_EQ(bytes(), first);
}

TEST_P(BatchTrainerTest, DelayAndPriorGroupsAndNoFilterChangeTheWayNotTheEnd) {
  const double objective = train(1).objective;
  settings_.max_delay = 3;
  settings_.prior_groups = {1};
  settings_.kkt_ratio = 1e20;
  settings_.random_order = false;
  settings_.filters = {{FilterKind::kKeyCaching}};
  const BatchProgress delayed = train(2);
  EXPECT_TRUE(delayed.converged);
  EXPECT_NEAR(delayed.objective / objective, 1, 1e-5);
}

// Each example has a feature of every block: steps that do not know of each other add up.
TEST_P(BatchTrainerTest, ALargeDelayOnlyTakesLonger) {
  settings_.epsilon = 1e-5;
  const double objective = train(1).objective;
  for (const uint32_t delay : {2u, 6u, 100u}) {
    settings_.max_delay = delay;
    const BatchProgress delayed = train(2);
    EXPECT_TRUE(delayed.converged) << delay;
    EXPECT_NEAR(delayed.objective / objective, 1, 1e-3) << delay;
  }
}

TEST_P(BatchTrainerTest, TriesTheModelAfterEachIterationAndStopsIfThatGetsNoBetter) {
  settings_.validation.files = {"train/b"};
  const BatchProgress all = train(2);
  EXPECT_TRUE(all.validated);
  EXPECT_GT(all.validation_auc, 0.6);
  EXPECT_LT(all.validation_logloss, 0.68);
  EXPECT_FALSE(all.stopped);
  settings_.validation.early_stop = {.patience = 2, .min_decrease = 0.5};
  const BatchProgress few = train(2);
  EXPECT_TRUE(few.stopped);
  EXPECT_EQ(few.iteration, 3u);  // one that is the best so far, and two that are no gain
  MutexLock lock(mutex_);
  const auto tried = [](const BatchProgress& one) { return one.stage == BatchProgress::Stage::kValidated; };
  EXPECT_EQ(std::ranges::count_if(shown_, tried), all.iteration + few.iteration);
}

TEST_P(BatchTrainerTest, AnObjectiveOfZeroIsTheEnd) {
  std::string text;
  for (int i = 0; i < 8; ++i) text += "1 1:1000\n-1 2:1000\n";
  store_.put("separable", text);
  settings_.files = {"separable"};
  settings_.blocks_per_feature.reset();  // steps in blocks come near it ever more slowly
  settings_.descent.rule.lambda1 = 0;
  settings_.epsilon = 0;
  const BatchProgress end = train(1);
  EXPECT_EQ(end.objective, 0);
  EXPECT_TRUE(end.converged);
  EXPECT_LT(end.iteration, settings_.iterations);
  MutexLock lock(mutex_);
  for (const BatchProgress& one : shown_) EXPECT_TRUE(std::isfinite(one.relative)) << one.iteration;
}

TEST_P(BatchTrainerTest, StartsWhereItIsTold) {
  const BatchProgress first = train(1);
  settings_.start.files = {"model/x_S.*"};
  settings_.model = {ModelFormat::kText, "model/y"};
  const BatchProgress again = train(2);
  EXPECT_LT(again.iteration, first.iteration);
  EXPECT_NEAR(again.objective / first.objective, 1, 1e-5);
  settings_.start = {.mean = 0.5, .stddev = 0.5, .files = {}};
  EXPECT_NEAR(train(2).objective / first.objective, 1, 1e-5);
}

TEST_P(BatchTrainerTest, SeldomFeaturesAreLeftOut) {
  const BatchProgress all = train(2);
  settings_.tail_cells_per_key = 1000;  // so that nearly nothing is mistaken
  const auto common = [&](uint32_t frequency) {
    settings_.tail.frequency = frequency;
    return train(2).keys;
  };
  const uint64_t ten = common(10);
  EXPECT_LT(ten, all.keys);
  EXPECT_LT(common(100), ten);
  EXPECT_GT(common(100), 0u);
  EXPECT_EQ(common(0), all.keys);
}

TEST_P(BatchTrainerTest, ReadsTheCacheTheNextTime) {
  settings_.cache_prefix = "cache/x_";
  settings_.iterations = 2;
  EXPECT_EQ(train(2).examples, 3000u);
  EXPECT_EQ(store_.list("cache").value().size(), 2u);
  // It believes the cache, and would notice a change of the file.
  const FilePart part{.uri = "train/a", .version = store_.stat("train/a").value().version};
  BlockCache cache(store_, store_, "cache/x_", "4 rules 1 with groups 10000 rows");
  ASSERT_TRUE(cache.open(part).value());
  BlockWriter writer = cache.create(part).value();
  RowBlock block;
  block.keys = {7};
  block.end_row(1);
  NumberedRows one;
  one.assign(slice_of(block, 0, 1), block.keys, std::vector<uint32_t>{0});
  ASSERT_TRUE(writer.write(one));
  ASSERT_TRUE(writer.commit({}));
  EXPECT_EQ(train(2).examples, 1501u);
}

TEST_P(BatchTrainerTest, SavesOnTheWayToo) {
  settings_.save_every = 2;
  settings_.iterations = 5;
  settings_.epsilon = 0;
  const BatchProgress end = train(1);
  EXPECT_FALSE(end.converged);
  EXPECT_EQ(end.iteration, 5u);
  EXPECT_TRUE(store_.stat("model/x_it_1_S0"));
  EXPECT_TRUE(store_.stat("model/x_it_3_S0"));
  EXPECT_FALSE(store_.stat("model/x_it_4_S0"));
  EXPECT_NE(model("model/x_it_1_S0"), model("model/x_it_3_S0"));
}

TEST_P(BatchTrainerTest, WhenAWorkerDiesTheOthersTakeItsExamples) {
  const double objective = train(1).objective;
  const TestingCluster cluster({.workers = 2});
  std::unique_ptr<Worker> dying;
  std::jthread joining([&] { dying = cluster.worker(1); });
  const auto staying = cluster.worker(0);
  joining.join();
  std::atomic<int> blocks = 0;
  std::atomic<bool> has_examples = false;
  const auto dies = [&] { return blocks.fetch_add(1) > (GetParam() ? 100 : 1); };
  std::jthread second([&] {
    WatchedStore told(store_, [&](size_t) -> Result<> {
      has_examples.store(true);
      return {};
    });
    EXPECT_FALSE(run(*dying, told, dies));
    dying.reset();
  });
  WatchedStore waiting(store_, [&](size_t) -> Result<> {
    while (!has_examples.load()) std::this_thread::yield();
    return {};
  });
  const auto progress = run(*staying, waiting);
  ASSERT_TRUE(progress) << progress.error().message;
  EXPECT_TRUE(progress->converged);
  EXPECT_EQ(progress->examples, 3000u);
  EXPECT_NEAR(progress->objective / objective, 1, 1e-5);
  EXPECT_TRUE(staying->leave());
  MutexLock lock(mutex_);
  const auto loaded = [](const BatchProgress& one) { return one.stage == BatchProgress::Stage::kLoaded; };
  EXPECT_GE(std::ranges::count_if(shown_, loaded), 3);  // the first run, and two of this one
}

// Whoever is the first then would tell it again.
TEST_P(BatchTrainerTest, TheEndIsWhatEachWorkerReturnsAndIsNotShown) {
  EXPECT_EQ(train(2).stage, BatchProgress::Stage::kEnd);
  MutexLock lock(mutex_);
  const auto ends = [](const BatchProgress& one) { return one.stage == BatchProgress::Stage::kEnd; };
  EXPECT_EQ(std::ranges::count_if(shown_, ends), 0);
}

TEST_P(BatchTrainerTest, AWorkerThatComesLateIsRefused) {
  const TestingCluster cluster({.workers = 1});
  const auto worker = cluster.worker();
  ASSERT_TRUE(worker->create_table({.name = "t"}));
  ASSERT_TRUE(worker->clock().wait());
  EXPECT_THAT(run(*worker, store_).error().message, HasSubstr("begun without this worker"));
  EXPECT_TRUE(worker->leave());
}

TEST_P(BatchTrainerTest, BadLinesAreCountedOrEndTheRun) {
  settings_.files = {"bad"};
  EXPECT_EQ(train(1).bad_lines, 1u);
  settings_.strict = true;
  const TestingCluster cluster;
  const auto worker = cluster.worker();
  EXPECT_EQ(run(*worker, store_).error().message, "bad:501: the value of key 3 is no number");
  EXPECT_TRUE(worker->leave());
}

INSTANTIATE_TEST_SUITE_P(InBlocks, BatchTrainerTest, testing::Values(true));
INSTANTIATE_TEST_SUITE_P(Together, BatchTrainerTest, testing::Values(false));

}  // namespace
}  // namespace pscloud

// Training and evaluating as a job of several workers does it.

#include "learn/online_trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "base/log.h"
#include "base/mutex.h"
#include "data/click_log.h"
#include "data/text_writer.h"
#include "engine/testing_cluster.h"
#include "io/memory_store.h"
#include "io/watched_store.h"
#include "learn/evaluation.h"
#include "learn/score_summary.h"

namespace pscloud {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

struct Clicks {
  std::string text;
  ScoreSummary best;
};

Clicks some_clicks(int examples, uint64_t seed, uint32_t interactions = 0) {
  ClickLog log({.counts = 3,
                .categories = 8,
                .keys = interactions > 0 ? 80u : 800u,
                .interactions = interactions,
                .interaction_strength = 2,
                .seed = seed});
  Clicks clicks;
  RowBlock block;
  std::vector<float> scores;
  for (int i = 0; i < examples; ++i) scores.push_back(log.next(block));
  EXPECT_TRUE(append_text(ExampleFormat::kLibsvm, slice_of(block, 0, block.rows()), 0, clicks.text));
  clicks.best.add(block.labels, scores);
  return clicks;
}

class OnlineTrainerTest : public testing::Test {
 protected:
  void SetUp() override { set_log_level(LogLevel::kSilent); }
  void TearDown() override { set_log_level(LogLevel::kInfo); }

  OnlineTrainerTest() {
    settings_.files = {"train/.*"};
    settings_.table = {.name = "weights", .updater = {"ftrl", {{"alpha", 0.1f}, {"beta", 1}, {"lambda1", 0.1f}}}};
    settings_.minibatch = 100;
    settings_.model = {ModelFormat::kText, "model/clicks"};
    evaluation_.model_files = {"model/clicks_S.*"};
    evaluation_.files = {"test"};
  }

  Result<OnlineProgress> train(Worker& worker, FileStore& store, FileStore* scratch = nullptr) {
    const auto show = [this](const OnlineProgress& one) {
      MutexLock lock(mutex_);
      shown_.push_back(one);
    };
    return OnlineTrainer(worker, store, scratch, settings_, show).run();
  }

  OnlineSettings settings_;
  EvaluationSettings evaluation_;
  Mutex mutex_;
  std::vector<OnlineProgress> shown_ GUARDED_BY(mutex_);
};

TEST_F(OnlineTrainerTest, SeveralWorkersTrainAModelThatIsNearlyTheBest) {
  const Clicks test = some_clicks(5000, 9);
  MemoryStore store({{"train/a", some_clicks(20000, 1).text},
                     {"train/b", some_clicks(20000, 2).text},
                     {"train/c", some_clicks(2000, 3).text},
                     {"test", test.text}},
                    1 << 20);
  settings_.passes = 2;
  settings_.validation.files = {"test"};
  double validated = 0;
  {
    const TestingCluster cluster({.servers = 2, .workers = 3});
    cluster.run_workers([&](Worker& worker) {
      const auto progress = train(worker, store);
      ASSERT_TRUE(progress) << progress.error().message;
      EXPECT_EQ(progress->examples, 84000u);
      EXPECT_EQ(progress->repeated, 0u);
      EXPECT_LT(progress->mean_loss(), 0.60);
      EXPECT_GT(progress->mean_auc(), 0.65);
      EXPECT_EQ(progress->bad_lines, 0u);
      EXPECT_GT(progress->nonzero, 100u);
      EXPECT_GE(progress->bytes, progress->bytes_all);
      EXPECT_EQ(progress->validated, 2u);
      if (worker.rank() == 0) validated = progress->validation_auc;
    });
  }
  const TestingCluster cluster({.servers = 1, .workers = 2});
  cluster.run_workers([&](Worker& worker) {
    const auto evaluation = evaluate(worker, store, evaluation_);
    ASSERT_TRUE(evaluation) << evaluation.error().message;
    EXPECT_EQ(evaluation->model_files, 2u);
    EXPECT_GT(evaluation->weights, 100u);
    EXPECT_EQ(evaluation->scored.examples, 5000u);
    EXPECT_EQ(evaluation->scored.auc, validated);
    // Three workers push in any order: 60 runs were from 0.0084 to 0.0099 below the best.
    EXPECT_GT(evaluation->scored.auc, test.best.auc() - 0.013);
    EXPECT_LT(evaluation->scored.logloss, test.best.logloss() + 0.01);
  });
}

TEST_F(OnlineTrainerTest, FurtherPassesReadNoTextAndTrainTheSame) {
  MemoryStore store({{"train/a", some_clicks(3000, 1).text},
                     {"train/b", some_clicks(2000, 2).text + "no example\n"},
                     {"test", some_clicks(1000, 9).text}},
                    1 << 20);
  const uint64_t bytes = store.get("train/a").size() + store.get("train/b").size() + store.get("test").size();
  settings_.passes = 3;
  settings_.selection.shuffle = true;
  settings_.tail = {.frequency = 2, .hashes = 2};
  settings_.tail_cells = 100000;
  settings_.validation.files = {"test"};
  uint64_t bytes_read = 0;
  const auto model_of = [&](FileStore* scratch) {
    bytes_read = 0;
    WatchedStore watched(store, [&](size_t more) {
      bytes_read += more;
      return Result<>();
    });
    const TestingCluster cluster;
    const auto worker = cluster.worker();
    const auto progress = train(*worker, watched, scratch);
    EXPECT_TRUE(progress) << progress.error().message;
    EXPECT_EQ(progress->examples, 15000u);
    EXPECT_EQ(progress->bad_lines, 1u);
    EXPECT_GE(progress->bytes, progress->bytes_all);
    EXPECT_TRUE(worker->leave());
    return store.get("model/clicks_S0") + fmt::format(" {}", progress->validation_logloss);
  };
  const std::string expected = model_of(nullptr);
  EXPECT_GE(bytes_read, 3 * bytes);
  MemoryStore scratch({}, 1 << 20);
  EXPECT_EQ(model_of(&scratch), expected);
  // The number of a bad line is counted from the beginning of its file.
  const uint64_t to_count = store.get("train/b").size();
  EXPECT_LE(bytes_read, bytes + to_count);
  EXPECT_EQ(model_of(&scratch), expected);
  EXPECT_LE(bytes_read, to_count);

  // Where the settings name a place, the next run reads none either.
  settings_.cache_prefix = "cache/x-";
  EXPECT_EQ(model_of(nullptr), expected);
  EXPECT_EQ(store.list("cache")->size(), 3u);
  EXPECT_EQ(model_of(nullptr), expected);
}

TEST_F(OnlineTrainerTest, MoreThanAHundredPassesAreTriedOnOtherData) {
  MemoryStore store({{"train/a", some_clicks(100, 1).text}, {"test", some_clicks(100, 9).text}}, 1 << 20);
  settings_.passes = 120;
  settings_.validation.files = {"test"};
  MemoryStore scratch({}, 1 << 20);
  const TestingCluster cluster({.servers = 1, .workers = 2});
  cluster.run_workers([&](Worker& worker) {
    const auto progress = train(worker, store, &scratch);
    ASSERT_TRUE(progress) << progress.error().message;
    EXPECT_EQ(progress->validated, 120u);
  });
}

TEST_F(OnlineTrainerTest, AFactorizationMachineFindsInteractionsThatALinearModelCannot) {
  const Clicks test = some_clicks(2000, 9, 2);
  MemoryStore store(
      {{"train/a", some_clicks(4000, 1, 2).text}, {"train/b", some_clicks(4000, 2, 2).text}, {"test", test.text}},
      1 << 20);
  settings_.passes = 3;
  settings_.minibatch = 50;
  settings_.validation.files = {"test"};
  const auto logloss_after_training = [&](bool machine) {
    if (machine) {
      settings_.embeddings = EmbeddingSettings{
          .table = {.name = "embeddings",
                    .width = 4,
                    .updater = {"adagrad", {{"learning_rate", 0.1f}, {"epsilon", 1}}},
                    .initial = {-0.1f, 0.1f, 1}},
          .counts = TableSpec{.name = "counts"},
          .threshold = 10,
      };
    }
    double logloss = 0;
    const TestingCluster cluster({.servers = 2, .workers = 2});
    cluster.run_workers([&](Worker& worker) {
      const auto progress = train(worker, store);
      ASSERT_TRUE(progress) << progress.error().message;
      EXPECT_EQ(progress->dim, machine ? 4u : 0u);
      EXPECT_EQ(progress->embeddings > 50, machine);
      if (worker.rank() == 0) logloss = progress->validation_logloss;
    });
    return logloss;
  };
  const double linear = logloss_after_training(false);
  const double machine = logloss_after_training(true);
  EXPECT_LT(machine, linear - 0.05);
  EXPECT_LT(machine, test.best.logloss() + 0.05);

  // What was saved is what was validated.
  const TestingCluster cluster({.workers = 2});
  cluster.run_workers([&](Worker& worker) {
    const auto evaluation = evaluate(worker, store, evaluation_);
    ASSERT_TRUE(evaluation) << evaluation.error().message;
    EXPECT_GT(evaluation->embeddings, 50u);
    EXPECT_GE(evaluation->weights, evaluation->embeddings);
    EXPECT_NEAR(evaluation->scored.logloss, machine, 1e-6);
  });
}

TEST_F(OnlineTrainerTest, WithoutShrinkingKeysWhoseWeightIsZeroAreSavedWithTheirEmbedding) {
  MemoryStore store({{"train/a", some_clicks(1000, 1, 2).text}, {"test", some_clicks(500, 9).text}}, 1 << 20);
  settings_.validation.files = {"test"};  // with keys that were never seen
  settings_.table.updater.numbers[2].second = 5;
  settings_.embeddings = EmbeddingSettings{.table = {.name = "embeddings",
                                                     .width = 2,
                                                     .updater = {"adagrad", {{"learning_rate", 0.1f}, {"epsilon", 1}}},
                                                     .initial = {-0.1f, 0.1f, 1}},
                                           .counts = TableSpec{.name = "counts"},
                                           .l1_shrink = false};
  OnlineProgress trained;
  {
    const TestingCluster cluster;
    const auto worker = cluster.worker();
    trained = train(*worker, store).value();
    EXPECT_TRUE(worker->leave());
  }
  EXPECT_LT(trained.nonzero, trained.embeddings);
  const TestingCluster cluster;
  const auto worker = cluster.worker();
  const Evaluation evaluation = evaluate(*worker, store, evaluation_).value();
  EXPECT_EQ(evaluation.embeddings, trained.embeddings);
  EXPECT_EQ(evaluation.weights, trained.embeddings);  // a line for each
  EXPECT_EQ(evaluation.scored.logloss, trained.validation_logloss);
  EXPECT_TRUE(worker->leave());
}

TEST_F(OnlineTrainerTest, FilesWithEmbeddingsOfOtherLengthsAreNotOfOneModel) {
  MemoryStore store({{"model/clicks_S0", std::string("1\t1\t2\n")},
                     {"model/clicks_S1", std::string("2\t1\t2\t3\n")},
                     {"test", std::string("1 1:1\n")}},
                    1 << 20);
  const TestingCluster cluster;
  const auto worker = cluster.worker();
  EXPECT_EQ(evaluate(*worker, store, evaluation_).error().message,
            "model/clicks_S1: embeddings of 2 numbers: those of another file have more or less");
  EXPECT_TRUE(worker->leave());
}

TEST_F(OnlineTrainerTest, TheWorkOfAWorkerThatDiesIsDoneByTheOthers) {
  MemoryStore store({{"train/a", some_clicks(4000, 1).text}, {"train/b", some_clicks(4000, 2).text}}, 1 << 20);
  const TestingCluster cluster({.workers = 2});
  std::unique_ptr<Worker> first;
  std::jthread joining([&] { first = cluster.worker(0); });
  const auto second = cluster.worker(1);
  joining.join();
  // It takes a part, and that is the last that is heard of it.
  const std::vector<std::string> parts = {to_text({.uri = "train/a"}), to_text({.uri = "train/b"})};
  ASSERT_TRUE(first->offer_work("pass 1", parts).value());
  ASSERT_TRUE(first->take_work("pass 1").value().has_value());
  first.reset();
  const auto progress = train(*second, store);
  ASSERT_TRUE(progress) << progress.error().message;
  EXPECT_EQ(progress->examples, 8000u);
  EXPECT_EQ(progress->repeated, 0u);  // nobody has heard of any that it trained on
  EXPECT_EQ(progress->repeated_parts, 1u);
  EXPECT_TRUE(second->leave());
}

// The key 7 stands in each line, 1000 + i in two of them, in different files.
TEST_F(OnlineTrainerTest, SeldomFeaturesAreLeftOut) {
  std::string text;
  for (int i = 0; i < 300; ++i) text += fmt::format("{} 7:1 {}:1\n", i % 3 == 0 ? 1 : -1, 1000 + i);
  MemoryStore store({{"train/a", text}, {"train/b", text}}, 1 << 20);
  settings_.table.updater = {"sgd", {{"learning_rate", 0.01f}}};
  const auto nonzero = [&](uint32_t frequency, uint32_t passes) {
    settings_.tail.frequency = frequency;
    settings_.tail_cells = 1'000'000;
    settings_.passes = passes;
    const TestingCluster cluster({.servers = 2, .workers = 2});
    uint64_t count = 0;
    cluster.run_workers([&](Worker& worker) {
      const auto progress = train(worker, store);
      ASSERT_TRUE(progress) << progress.error().message;
      if (worker.rank() == 0) count = progress->nonzero;
    });
    return count;
  };
  EXPECT_EQ(nonzero(0, 1), 301u);
  EXPECT_EQ(nonzero(1, 1), 301u);  // at their second time
  EXPECT_EQ(nonzero(2, 1), 1u);
  EXPECT_EQ(nonzero(2, 3), 1u);  // further passes do not count
}

TEST_F(OnlineTrainerTest, StopsWhenTheValidationDataSayNoMore) {
  MemoryStore store({{"train/a", some_clicks(2000, 1).text}, {"test", some_clicks(1000, 9).text}}, 1 << 20);
  settings_.passes = 200;
  settings_.validation.files = {"test"};
  settings_.validation.early_stop = {.patience = 2, .min_decrease = 1e-3};
  const TestingCluster cluster({.workers = 2});
  cluster.run_workers([&](Worker& worker) {
    const auto progress = train(worker, store);
    ASSERT_TRUE(progress) << progress.error().message;
    EXPECT_GE(progress->stopped, 3u);
    EXPECT_LT(progress->stopped, 100u);
    EXPECT_EQ(progress->stopped, progress->validated);
    EXPECT_EQ(progress->examples, 2000u * progress->stopped);
    EXPECT_EQ(progress->minibatches * 100, progress->examples);
    EXPECT_GT(progress->pull_seconds, 0);
  });
}

TEST_F(OnlineTrainerTest, BadLinesAreCountedOrEndTheRun) {
  const std::string good = some_clicks(100, 1).text;
  MemoryStore store({{"train/a", good + "1 3:x\n" + good}}, 1 << 20);
  const TestingCluster cluster;
  const auto worker = cluster.worker();
  const auto progress = train(*worker, store);
  ASSERT_TRUE(progress) << progress.error().message;
  EXPECT_EQ(progress->examples, 200u);
  EXPECT_EQ(progress->bad_lines, 1u);
  EXPECT_TRUE(worker->leave());

  settings_.strict = true;
  const TestingCluster other;
  const auto strict = other.worker();
  EXPECT_EQ(train(*strict, store).error().message, "train/a:101: the value of key 3 is no number");
  EXPECT_TRUE(strict->leave());
}

TEST_F(OnlineTrainerTest, ABadLineCountsOnceHoweverOftenItIsRead) {
  MemoryStore store({{"train/a", some_clicks(100, 1).text + "1 3:x\n"}, {"train/b", some_clicks(100, 2).text}},
                    1 << 20);
  settings_.passes = 3;
  settings_.selection.replica = 2;
  settings_.selection.shuffle = true;
  for (const bool synchronous : {false, true}) {
    settings_.synchronous = synchronous;
    const TestingCluster cluster({.workers = 2});
    cluster.run_workers([&](Worker& worker) {
      const auto progress = train(worker, store);
      ASSERT_TRUE(progress) << progress.error().message;
      EXPECT_EQ(progress->examples, 1200u);
      EXPECT_EQ(progress->bad_lines, 1u);
    });
  }
}

TEST_F(OnlineTrainerTest, ATrainingThatDivergesSaysSo) {
  std::string text;
  for (int i = 0; i < 2000; ++i) text += fmt::format("{} 1:{} 2:1\n", i % 2 == 0 ? 1 : -1, i % 7);
  MemoryStore store({{"train/a", text}}, 1 << 20);
  settings_.loss = Loss::kSquare;
  settings_.table.updater = {"sgd", {{"learning_rate", 1}}};
  settings_.minibatch = 10;
  const TestingCluster cluster;
  const auto worker = cluster.worker();
  const auto trained = train(*worker, store);
  ASSERT_FALSE(trained);
  EXPECT_EQ(trained.error().code, Code::kFailed);
  EXPECT_THAT(trained.error().message, HasSubstr("the training diverges"));
  EXPECT_THAT(trained.error().message, HasSubstr("a smaller learning_rate.alpha"));
  EXPECT_TRUE(worker->leave());
}

TEST_F(OnlineTrainerTest, AWorkerThatLeavesWaitsForOneCheckpointThoughOthersAreQuickerToWriteIt) {
  MemoryStore store({}, 1 << 20);
  for (int i = 0; i < 20; ++i) store.put(fmt::format("train/{}", i), some_clicks(20, i).text);
  settings_.checkpoint.folder = "ck";
  settings_.checkpoint.every_seconds = 3600;
  const TestingCluster cluster({.workers = 2});
  std::atomic<bool> gone = false;
  cluster.run_workers([&](Worker& worker) {
    if (worker.rank() == 1) {
      const auto left = OnlineTrainer(
                            worker, store, nullptr, settings_, [](const OnlineProgress&) {}, [] { return true; })
                            .run();
      gone = true;
      ASSERT_FALSE(left);
      EXPECT_THAT(left.error().message, HasSubstr("its machine is taken away"));
      std::vector<std::string> names;
      const auto files = store.list("ck");
      ASSERT_TRUE(files);
      for (const FileInfo& file : *files) names.push_back(file.uri);
      EXPECT_THAT(names, Contains(HasSubstr("checkpoint-1")));
      EXPECT_THAT(names, Not(Contains(HasSubstr("checkpoint-2"))));
      return;
    }
    // The other one is done long before, and asks only now and then.
    WatchedStore slow(store, [&](size_t) -> Result<> {
      if (!gone) std::this_thread::sleep_for(std::chrono::milliseconds(200));
      return {};
    });
    const auto progress = train(worker, slow);
    ASSERT_TRUE(progress) << progress.error().message;
    EXPECT_EQ(progress->examples, 400u);
    EXPECT_EQ(progress->repeated, 0u);
  });
}

TEST_F(OnlineTrainerTest, AWorkerThatLeavesHasDoneItsPartAndAnotherTakesItsPlace) {
  MemoryStore store({}, 1 << 20);
  for (int i = 0; i < 20; ++i) store.put(fmt::format("train/{}", i), some_clicks(200, i).text);
  const TestingCluster cluster({.workers = 2});
  std::atomic<bool> gone = false;
  Result<OnlineProgress> outcome;
  {
    std::vector<std::jthread> threads;
    threads.emplace_back([&] {
      const auto first = cluster.worker(0);
      const auto left = OnlineTrainer(
                            *first, store, nullptr, settings_, [](const OnlineProgress&) {}, [] { return true; })
                            .run();
      EXPECT_THAT(left.error().message, HasSubstr("its machine is taken away"));
      EXPECT_TRUE(first->leave()) << "more than one goodbye does no harm";
      gone = true;
      gone.notify_all();
      const auto second = cluster.worker(0);
      EXPECT_EQ(second->rank(), 0) << "the place is free";
      EXPECT_TRUE(train(*second, store));
      EXPECT_TRUE(second->leave());
    });
    threads.emplace_back([&] {
      const auto other = cluster.worker(1);
      // There is always something left for the one that comes.
      WatchedStore slow(store, [&](size_t) -> Result<> {
        gone.wait(false);
        return {};
      });
      outcome = train(*other, slow);
      EXPECT_TRUE(other->leave());
    });
  }
  ASSERT_TRUE(outcome) << outcome.error().message;
  EXPECT_EQ(outcome->examples, 4000u);
  EXPECT_EQ(outcome->repeated, 0u);
}

TEST_F(OnlineTrainerTest, EndsWhenAFileCannotBeReadOn) {
  MemoryStore store({{"train/a", some_clicks(1000, 1).text}}, 1 << 20);
  WatchedStore broken(store, [](size_t) -> Result<> { return job_failed("interrupted"); });
  const TestingCluster cluster;
  const auto worker = cluster.worker();
  EXPECT_THAT(train(*worker, broken).error().message, HasSubstr("interrupted"));
  EXPECT_TRUE(worker->leave());
}

TEST_F(OnlineTrainerTest, MissingFilesAreNamed) {
  MemoryStore store({{"train/a", std::string("1 1:1\n")}}, 1 << 20);
  settings_.files = {"elsewhere/part.*"};
  const TestingCluster cluster;
  const auto worker = cluster.worker();
  EXPECT_THAT(train(*worker, store).error().message, HasSubstr("elsewhere"));
  EXPECT_TRUE(worker->leave());
}

TEST_F(OnlineTrainerTest, WhatIsShownGrows) {
  MemoryStore store({{"train/a", some_clicks(3000, 1).text}}, 1 << 20);
  settings_.report_seconds = 0;
  settings_.max_delay = 2;
  const TestingCluster cluster;
  const auto worker = cluster.worker();
  ASSERT_TRUE(train(*worker, store));
  EXPECT_TRUE(worker->leave());
  MutexLock lock(mutex_);
  ASSERT_GE(shown_.size(), 30u);
  EXPECT_EQ(shown_.front().examples, 100u);
  for (size_t i = 1; i < shown_.size(); ++i) EXPECT_GE(shown_[i].examples, shown_[i - 1].examples);
  EXPECT_EQ(shown_.back().examples, 3000u);
  EXPECT_GT(shown_.back().update_ratio().value(), 0);
  EXPECT_LT(shown_.back().update_ratio().value(), 10);
}

}  // namespace
}  // namespace pscloud

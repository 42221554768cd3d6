// Runs that end in the middle, and go on.

#include "learn/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>

#include "base/clock.h"
#include "base/log.h"
#include "base/mutex.h"
#include "data/click_log.h"
#include "data/text_writer.h"
#include "engine/testing_cluster.h"
#include "io/config_file.h"
#include "io/memory_store.h"
#include "io/watched_store.h"
#include "learn/checkpoint_files.h"
#include "learn/config.pb.h"
#include "learn/online_trainer.h"

namespace pscloud {
namespace {

using testing::HasSubstr;

std::string click_lines(int examples, uint64_t seed) {
  ClickLog log({.counts = 3, .categories = 8, .keys = 800, .seed = seed});
  RowBlock block;
  std::string text;
  for (int i = 0; i < examples; ++i) log.next(block);
  EXPECT_TRUE(append_text(ExampleFormat::kLibsvm, slice_of(block, 0, block.rows()), 0, text));
  return text;
}

class CheckpointTest : public testing::Test {
 protected:
  CheckpointTest() : store_({}, 1 << 20) {
    set_log_level(LogLevel::kSilent);
    for (uint64_t file = 0; file < kFiles; ++file) {
      store_.put("train/" + std::to_string(file), click_lines(kExamples, file));
      data_bytes_ += store_.get("train/" + std::to_string(file)).size();
    }
    configure("");
  }
  ~CheckpointTest() override { set_log_level(LogLevel::kInfo); }

  void configure(const std::string& more) {
    PS::LM::Config config;
    EXPECT_TRUE(
        parse_config("training_data { format: TEXT text: LIBSVM file: 'train/.*' } loss { type: LOGIT }"
                     "model_output { format: BIN file: 'model' } penalty { type: L1 lambda: 0.1 }"
                     "learning_rate { type: DECAY alpha: 0.1 beta: 1 }"
                     "async_sgd { algo: FTRL minibatch: 50 max_delay: 1 num_data_pass: 2 }"
                     "checkpoint { folder: 'ck' every_seconds: 0 }" +
                         more,
                     "test", config));
    settings_ = online_settings(config).value();
  }

  // Ends in the middle of the data once so many bytes were read.
  Result<OnlineProgress> train(int servers, int workers, uint64_t bytes_max = UINT64_MAX) {
    std::atomic<uint64_t> bytes = 0;
    WatchedStore store(store_, [&](size_t more) -> Result<> {
      if ((bytes += more) > bytes_max) return job_failed("killed");
      return {};
    });
    Mutex mutex;
    Result<OnlineProgress> outcome;
    const TestingCluster cluster({.servers = servers, .workers = workers});
    cluster.run_workers([&](Worker& worker) {
      auto one = OnlineTrainer(worker, store, nullptr, settings_, [](const OnlineProgress&) {}).run();
      MutexLock lock(mutex);
      outcome = std::move(one);
    });
    return outcome;
  }
  std::string model() { return store_.get("model_S0") + "|" + store_.get("model_S1"); }

  static constexpr uint64_t kFiles = 5;  // each is one part
  static constexpr int kExamples = 1000;
  MemoryStore store_;
  uint64_t data_bytes_ = 0;
  OnlineSettings settings_;
};

TEST_F(CheckpointTest, WhatIsResumedGivesTheBytesOfARunThatWasNot) {
  settings_.checkpoint.folder = "";
  ASSERT_TRUE(train(2, 1));
  const std::string expected = model();
  settings_.checkpoint.folder = "ck";
  // In the first pass, and before the first checkpoint; in the second; and twice.
  const std::vector<std::vector<double>> runs{{0.1}, {0.5}, {1.0}, {1.7}, {0.7, 0.4}};
  for (const std::vector<double>& kills : runs) {
    settings_.checkpoint.resume = false;
    for (const double kill : kills) {
      const auto killed = train(2, 1, static_cast<uint64_t>(static_cast<double>(data_bytes_) * kill));
      ASSERT_FALSE(killed);
      EXPECT_EQ(killed.error().message, "killed");
      settings_.checkpoint.resume = !list_checkpoints(store_, "ck").value().empty();
    }
    EXPECT_EQ(settings_.checkpoint.resume, kills[0] > 0.1);
    EXPECT_LE(list_checkpoints(store_, "ck").value().size(), 2u);
    const auto progress = train(2, 1);
    ASSERT_TRUE(progress) << progress.error().message;
    EXPECT_EQ(progress->examples, 2 * kFiles * kExamples);
    EXPECT_EQ(progress->repeated, 0u);
    EXPECT_EQ(progress->resumed % kExamples, 0u);
    EXPECT_EQ(progress->resumed > 0, settings_.checkpoint.resume);
    EXPECT_EQ(model(), expected);
    EXPECT_TRUE(store_.list("ck").value().empty());  // there is nothing to resume any more
  }
}

TEST_F(CheckpointTest, AWorkerThatLeavesSeesToACheckpointBefore) {
  settings_.checkpoint.every_seconds = 3600;
  const TestingCluster cluster({.servers = 2, .workers = 1});
  const auto worker = cluster.worker();
  const auto left = OnlineTrainer(
                        *worker, store_, nullptr, settings_, [](const OnlineProgress&) {}, [] { return true; })
                        .run();
  EXPECT_FALSE(left);
  EXPECT_EQ(list_checkpoints(store_, "ck").value().size(), 1u);
  settings_.checkpoint.resume = true;
  const auto progress = train(2, 1);
  ASSERT_TRUE(progress) << progress.error().message;
  EXPECT_EQ(progress->resumed, kExamples) << "its one part";
  EXPECT_EQ(progress->examples, 2 * kFiles * kExamples);
  EXPECT_EQ(progress->repeated, 0u);
}

TEST_F(CheckpointTest, CountsOfSeldomFeaturesAreKept) {
  settings_.tail = {.frequency = 3, .hashes = 2};
  settings_.tail_cells = 5000;
  settings_.checkpoint.folder = "";
  ASSERT_TRUE(train(2, 1));
  const std::string expected = model();
  settings_.checkpoint.folder = "ck";
  for (const double kill : {0.5, 1.7}) {
    settings_.checkpoint.resume = false;
    ASSERT_FALSE(train(2, 1, static_cast<uint64_t>(static_cast<double>(data_bytes_) * kill)));
    settings_.checkpoint.resume = true;
    EXPECT_THAT(train(1, 1).error().message, HasSubstr("go with the number of server threads: resume with 2, not 1"));
    const auto progress = train(2, 1);
    ASSERT_TRUE(progress) << progress.error().message;
    EXPECT_EQ(model(), expected);
  }
}

TEST_F(CheckpointTest, ValidationAndEarlyStopAndDropoutGoOnAsIfNothingHadHappened) {
  store_.put("test/0", click_lines(kExamples, 99));
  configure(
      "factorization_machine { dim: 3 threshold: 5 dropout: 0.3 alpha: 0.1 }"
      "validation_data { format: TEXT text: LIBSVM file: 'test/.*' } early_stop { patience: 2 min_decrease: 0.002 }");
  settings_.passes = 8;
  settings_.checkpoint.folder = "";
  const auto whole = train(2, 1);
  ASSERT_TRUE(whole) << whole.error().message;
  ASSERT_GT(whole->stopped, 2u);
  ASSERT_LT(whole->stopped, 8u);
  ASSERT_GT(whole->embeddings, 100u);
  const std::string expected = model();
  settings_.checkpoint.folder = "ck";
  for (const double kill : {0.5, 1.9, whole->stopped - 0.5}) {
    settings_.checkpoint.resume = false;
    ASSERT_FALSE(train(2, 1, static_cast<uint64_t>(static_cast<double>(data_bytes_) * kill)));
    settings_.checkpoint.resume = true;
    const auto progress = train(2, 1);
    ASSERT_TRUE(progress) << progress.error().message;
    EXPECT_EQ(progress->stopped, whole->stopped);
    EXPECT_EQ(progress->validation_logloss, whole->validation_logloss);
    EXPECT_EQ(progress->examples, whole->examples);
    EXPECT_EQ(model(), expected);
  }
}

TEST_F(CheckpointTest, AnyWorkerSeesThatOneIsDue) {
  const TestingCluster cluster({.servers = 1, .workers = 2});
  cluster.run_workers([&](Worker& worker) {
    const SystemClock clock;
    const Time deadline = clock.now() + std::chrono::seconds(20);
    // The first is at its part until another has asked for a checkpoint.
    WatchedStore store(store_, [&](size_t) -> Result<> {
      while (worker.is_first() && clock.now() < deadline && TRY(worker.tally("checkpoints", {}, 0, 1)).front() == 0) {
      }
      return {};
    });
    const auto progress = OnlineTrainer(worker, store, nullptr, settings_, [](const OnlineProgress&) {}).run();
    ASSERT_TRUE(progress) << progress.error().message;
    EXPECT_LT(clock.now(), deadline);
  });
}

TEST_F(CheckpointTest, ARunGoesOnOnOtherServersAndWorkers) {
  ASSERT_FALSE(train(2, 2, data_bytes_ * 3 / 2));
  ASSERT_FALSE(list_checkpoints(store_, "ck").value().empty());
  settings_.checkpoint.resume = true;
  settings_.passes = 3;  // longer than it was meant to
  const auto progress = train(3, 3);
  ASSERT_TRUE(progress) << progress.error().message;
  EXPECT_EQ(progress->examples - progress->repeated, 3 * kFiles * kExamples);
  EXPECT_GT(progress->resumed, 0u);
}

TEST_F(CheckpointTest, OtherDataAreNotWhatItWasTrainedOn) {
  ASSERT_FALSE(train(1, 1, data_bytes_));
  settings_.checkpoint.resume = true;
  store_.put("train/new", click_lines(10, 99));
  EXPECT_THAT(train(1, 1).error().message, HasSubstr("the training data are not what they were: 5 parts then, 6 now"));
  ASSERT_TRUE(store_.remove("train/new"));
  store_.put("train/0", click_lines(kExamples - 1, 0));
  EXPECT_THAT(train(1, 1).error().message, HasSubstr("5 parts then, 5 now; files have come, gone or changed"));
}

TEST_F(CheckpointTest, ADamagedOneIsLeftForTheOneBefore) {
  ASSERT_TRUE(train(2, 1));
  const std::string expected = model();
  ASSERT_FALSE(train(2, 1, data_bytes_));
  const auto numbers = list_checkpoints(store_, "ck").value();
  ASSERT_EQ(numbers.size(), 2u);
  const std::string newest = checkpoint_part_file("ck", numbers[0], 0, 1);
  std::string bytes = store_.get(newest);
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 4);
  store_.put(newest, bytes);
  settings_.checkpoint.resume = true;
  ASSERT_TRUE(train(2, 1));
  EXPECT_EQ(model(), expected);
}

// Weights are those of the model, and what is learned is added to them.
TEST_F(CheckpointTest, AModelIsWhereATrainingBegins) {
  settings_.checkpoint.folder = "";
  settings_.passes = 1;
  settings_.model->format = ModelFormat::kText;
  ASSERT_TRUE(train(2, 1));
  const std::string first = model();
  settings_.initial_model = {"model_S.*"};
  settings_.files = {"train/0"};
  store_.put("train/0", "1\n");  // an example without features changes nothing
  ASSERT_TRUE(train(2, 1));
  EXPECT_EQ(model(), first);
  store_.put("train/0", click_lines(kExamples, 77));
  const auto progress = train(1, 1);
  ASSERT_TRUE(progress) << progress.error().message;
  EXPECT_LT(progress->mean_loss(), 0.65);  // it has learned before: from nothing it is ln 2 at first
  EXPECT_NE(model(), first);
}

TEST_F(CheckpointTest, ADiskThatIsFullEndsNoRun) {
  class FullStore final : public FileStore {
   public:
    explicit FullStore(FileStore& store) : store_(store) {}
    Result<FileInfo> stat(const std::string& uri) override { return store_.stat(uri); }
    Result<std::vector<FileInfo>> list(const std::string& folder) override { return store_.list(folder); }
    Result<std::vector<std::string>> list_folders(const std::string& folder) override {
      return store_.list_folders(folder);
    }
    Result<std::unique_ptr<Input>> open(const std::string& uri, ByteRange range) override {
      return store_.open(uri, range);
    }
    Result<std::unique_ptr<Output>> create(const std::string& uri) override {
      if (uri.starts_with("ck/")) return job_failed("{}: no space left on device", uri);
      return store_.create(uri);
    }

   private:
    FileStore& store_;
  };
  FullStore full(store_);
  const TestingCluster cluster({.servers = 1, .workers = 2});
  cluster.run_workers([&](Worker& worker) {
    const auto progress = OnlineTrainer(worker, full, nullptr, settings_, [](const OnlineProgress&) {}).run();
    ASSERT_TRUE(progress) << progress.error().message;
    EXPECT_EQ(progress->examples, 2 * kFiles * kExamples);
  });
}

}  // namespace
}  // namespace pscloud

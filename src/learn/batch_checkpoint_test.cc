// Batch training that ends in the middle, and goes on.

#include "learn/batch_checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/log.h"
#include "base/mutex.h"
#include "data/click_log.h"
#include "data/text_writer.h"
#include "engine/testing_cluster.h"
#include "io/config_file.h"
#include "io/memory_store.h"
#include "learn/batch_trainer.h"
#include "learn/checkpoint_files.h"
#include "learn/config.pb.h"

namespace pscloud {
namespace {

using testing::HasSubstr;

std::string clicks_in_lines(int examples, uint64_t seed) {
  ClickLog log({.counts = 2, .categories = 6, .keys = 400, .seed = seed});
  RowBlock block;
  std::string text;
  for (int i = 0; i < examples; ++i) log.next(block);
  EXPECT_TRUE(append_text(ExampleFormat::kLibsvm, slice_of(block, 0, block.rows()), 0, text));
  return text;
}

class BatchCheckpointTest : public testing::Test {
 protected:
  BatchCheckpointTest() : store_({}, 1 << 20) {
    set_log_level(LogLevel::kSilent);
    for (uint64_t file = 0; file < 4; ++file) store_.put("train/" + std::to_string(file), clicks_in_lines(500, file));
    PS::LM::Config config;
    EXPECT_TRUE(
        parse_config("training_data { format: TEXT text: LIBSVM file: 'train/.*' } loss { type: LOGIT }"
                     "model_output { format: BIN file: 'model' } penalty { type: L1 lambda: 1 }"
                     "darlin { feature_block_ratio: 4 max_pass_of_data: 30 epsilon: 1e-6 max_block_delay: 1 }"
                     "checkpoint { folder: 'ck' every_seconds: 0 }",
                     "test", config));
    settings_ = batch_settings(config).value();
  }
  ~BatchCheckpointTest() override { set_log_level(LogLevel::kInfo); }

  // Ends after so many iterations that it has shown.
  Result<BatchProgress> train(int servers, int workers, uint32_t iterations_max = UINT32_MAX) {
    Mutex mutex;
    uint32_t shown = 0;
    Result<BatchProgress> outcome;
    const TestingCluster cluster({.servers = servers, .workers = workers});
    cluster.run_workers([&](Worker& worker) {
      const auto show = [&](const BatchProgress& progress) {
        MutexLock lock(mutex);
        shown += progress.stage == BatchProgress::Stage::kIteration ? 1 : 0;
      };
      const auto cancelled = [&] {
        MutexLock lock(mutex);
        return shown >= iterations_max;
      };
      auto one = BatchTrainer(worker, store_, settings_, show, cancelled).run();
      MutexLock lock(mutex);
      outcome = std::move(one);
    });
    return outcome;
  }
  std::string model() { return store_.get("model_S0") + "|" + store_.get("model_S1"); }

  MemoryStore store_;
  BatchSettings settings_;
};

TEST_F(BatchCheckpointTest, WhatIsResumedGivesTheBytesOfARunThatWasNot) {
  for (const auto& [workers, newton] : {std::pair{1, false}, {1, true}, {3, false}, {3, true}}) {
    settings_.blocks_per_feature.reset();
    if (!newton) settings_.blocks_per_feature = 4;
    settings_.epsilon = newton ? 0 : 1e-9;
    settings_.iterations = 8;
    settings_.checkpoint.folder = "";
    settings_.checkpoint.resume = false;
    const BatchProgress whole = train(2, workers).value();
    ASSERT_GE(whole.iteration, 6u);  // Newton's method may come to rest before
    const std::string expected = model();
    settings_.checkpoint.folder = "ck";
    for (const std::vector<uint32_t>& kills : {std::vector<uint32_t>{1}, {5}, {2, 3}}) {
      settings_.checkpoint.resume = false;
      for (const uint32_t kill : kills) {
        ASSERT_FALSE(train(2, workers, kill));
        EXPECT_EQ(list_checkpoints(store_, "ck").value().size(), kill == 1 ? 1u : 2u);
        settings_.checkpoint.resume = true;
      }
      const auto progress = train(2, workers);
      ASSERT_TRUE(progress) << progress.error().message;
      EXPECT_EQ(progress->iteration, whole.iteration);
      EXPECT_EQ(progress->objective, whole.objective);
      EXPECT_EQ(progress->nonzero, whole.nonzero);
      EXPECT_EQ(model(), expected) << (newton ? "Newton" : "blocks") << " of " << workers;
      EXPECT_TRUE(store_.list("ck").value().empty());  // there is nothing to resume any more
    }
  }
}

TEST_F(BatchCheckpointTest, ARunThatOnlyLackedItsModelTellsWhatItHasDone) {
  settings_.model.reset();
  settings_.iterations = 3;
  settings_.epsilon = 0;
  const BatchProgress whole = train(2, 2).value();  // leaves its checkpoints, for there is no model
  ASSERT_EQ(whole.iteration, 3u);
  settings_.model = {ModelFormat::kBinary, "model"};
  settings_.checkpoint.resume = true;
  const auto progress = train(2, 2);
  ASSERT_TRUE(progress) << progress.error().message;
  EXPECT_EQ(progress->iteration, 3u);
  EXPECT_EQ(progress->objective, whole.objective);
  EXPECT_EQ(progress->nonzero, whole.nonzero);
  EXPECT_EQ(progress->keys, whole.keys);
}

TEST_F(BatchCheckpointTest, AWorkerThatLeavesSeesToACheckpointBefore) {
  settings_.checkpoint.every_seconds = 3600;
  const TestingCluster cluster({.servers = 2, .workers = 1});
  const auto worker = cluster.worker();
  const auto never = [] { return false; };
  const auto left = BatchTrainer(
                        *worker, store_, settings_, [](const BatchProgress&) {}, never, [] { return true; })
                        .run();
  ASSERT_FALSE(left);
  EXPECT_NE(left.error().message.find("its machine is taken away"), std::string::npos) << left.error().message;
  EXPECT_EQ(list_checkpoints(store_, "ck").value().size(), 1u);
  settings_.checkpoint.resume = true;
  EXPECT_TRUE(train(2, 1));
}

TEST_F(BatchCheckpointTest, ARunGoesOnOnOtherServersAndWorkers) {
  const double objective = train(1, 1)->objective;
  ASSERT_FALSE(train(2, 3, 4));
  settings_.checkpoint.resume = true;
  const auto progress = train(3, 2);
  ASSERT_TRUE(progress) << progress.error().message;
  EXPECT_TRUE(progress->converged);
  EXPECT_NEAR(progress->objective / objective, 1, 1e-5);
}

TEST_F(BatchCheckpointTest, OtherDataOrSettingsAreNotWhatItWasTrainedOn) {
  ASSERT_FALSE(train(1, 1, 2));
  settings_.checkpoint.resume = true;
  store_.put("train/new", clicks_in_lines(10, 99));
  EXPECT_THAT(train(1, 1).error().message,
              HasSubstr("the training data are not what they were: 2000 examples then, 2010 now"));
  ASSERT_TRUE(store_.remove("train/new"));
  settings_.checkpoint.config = "penalty { type: L1 lambda: 2 }";
  EXPECT_THAT(train(1, 1).error().message, HasSubstr("it was made with other settings"));
}

TEST_F(BatchCheckpointTest, ADamagedOneIsLeftForTheOneBefore) {
  settings_.checkpoint.folder = "";
  ASSERT_TRUE(train(2, 1));
  const std::string expected = model();
  settings_.checkpoint.folder = "ck";
  ASSERT_FALSE(train(2, 1, 5));
  const auto numbers = list_checkpoints(store_, "ck").value();
  ASSERT_EQ(numbers.size(), 2u);
  const std::string newest = checkpoint_worker_file("ck", numbers[0], 0);
  std::string bytes = store_.get(newest);
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 4);
  store_.put(newest, bytes);
  settings_.checkpoint.resume = true;
  ASSERT_TRUE(train(2, 1));
  EXPECT_EQ(model(), expected);
}

}  // namespace
}  // namespace pscloud

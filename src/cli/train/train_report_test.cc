#include "cli/train/train_report.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace pscloud {
namespace {

using Stage = BatchProgress::Stage;

BatchSettings of_iterations(uint32_t iterations) {
  BatchSettings settings;
  settings.iterations = iterations;
  return settings;
}

TEST(TrainReport, TheLiveLineHasRateShareAndTimeLeft) {
  EXPECT_EQ(live_line({.seconds = 10, .examples = 25000, .bytes = 1000, .bytes_all = 4000}),
            "25.0k examples, 2.5k/s, 25% done, 30 s left");
  // Parts that were read twice do not make it more than all.
  EXPECT_EQ(live_line({.seconds = 10, .examples = 50, .bytes = 5000, .bytes_all = 4000}),
            "50 examples, 5/s, 100% done, 0 s left");
  EXPECT_EQ(live_line({.seconds = 10, .examples = 0, .bytes = 0, .bytes_all = 4000}), "0 examples, 0/s");
  EXPECT_EQ(live_line({.seconds = 10, .examples = 0, .bytes = 1000, .bytes_all = 4000}), "0 examples, 0/s, 25% done");
}

TEST(TrainReport, OnlineTrainingHasTheSameLine) {
  OnlineProgress online;
  online.seconds = 10;
  online.examples = 25000;
  online.bytes = 1000;
  online.bytes_all = 4000;
  EXPECT_EQ(live_line(online, OnlineSettings()), "25.0k examples, 2.5k/s, 25% done, 30 s left");
}

TEST(TrainReport, WhatWasDoneBeforeItWasResumedMakesItNoFaster) {
  OnlineProgress online;
  online.seconds = 10;
  online.examples = 25000;
  online.resumed = 20000;
  online.bytes = 1000;
  online.bytes_all = 4000;
  EXPECT_EQ(live_line(online, OnlineSettings()), "25.0k examples, 500/s, 25% done, 150 s left");
}

TEST(TrainReport, BatchTrainingLoadsThenIterates) {
  BatchProgress batch;
  batch.stage = Stage::kLoading;
  batch.reading = {.seconds = 10, .examples = 25000, .bytes = 1000, .bytes_all = 4000};
  EXPECT_EQ(live_line(batch, of_iterations(20)), "loading: 25.0k examples, 2.5k/s, 25% done, 30 s left");
  batch.stage = Stage::kLoaded;
  EXPECT_EQ(live_line(batch, of_iterations(20)), "");
  batch.stage = Stage::kIterating;
  EXPECT_EQ(live_line(batch, of_iterations(20)), "");  // none of it is done
  batch.iterated = 12.5;
  batch.iterated_before = 10;  // in a run that was killed
  batch.iterated_seconds = 5;
  EXPECT_EQ(live_line(batch, of_iterations(20)),
            "12.5 of at most 20 iterations, 2 s each, 62% done, at most 15 s left");
  batch.stage = Stage::kEnd;
  EXPECT_EQ(live_line(batch, of_iterations(20)), "");
}

TEST(TrainReport, TheTableHasNoLineForWhatGoesOn) {
  BatchProgress batch;
  for (const Stage stage : {Stage::kLoading, Stage::kIterating}) {
    batch.stage = stage;
    EXPECT_EQ(batch_lines(batch, of_iterations(20)), "");
    EXPECT_EQ(metrics_line(batch), "");
  }
}

TEST(TrainReport, ProgressIsTheSameInAnotherProcess) {
  BatchProgress batch;
  batch.stage = Stage::kIterating;
  batch.seconds = 0.1;
  batch.reading = {.seconds = 1.0 / 3, .examples = 2, .bytes = 3, .bytes_all = 4};
  batch.examples = 5;
  batch.iteration = 6;
  batch.iterated = 6.7;
  batch.iterated_before = 2;
  batch.iterated_seconds = 8.9;
  batch.objective = 1e-300;
  batch.busy_max = 10;
  batch.stopped = true;
  const std::string text = encode_progress(batch);
  const auto again = decode_progress(text);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(encode_progress(*again), text);
  EXPECT_EQ(std::get<BatchProgress>(*again).reading.seconds, 1.0 / 3);
  EXPECT_EQ(std::get<BatchProgress>(*again).iterated_seconds, 8.9);
  EXPECT_TRUE(std::get<BatchProgress>(*again).stopped);

  OnlineProgress online;
  online.loss = std::numeric_limits<double>::infinity();
  online.auc = std::numeric_limits<double>::quiet_NaN();
  online.repeated_parts = 3;
  online.pass_seconds = {0.5, 0.25};
  const std::string diverged = encode_progress(online);
  const auto same = decode_progress(diverged);
  ASSERT_TRUE(same) << same.error().message;
  EXPECT_EQ(encode_progress(*same), diverged);
  EXPECT_TRUE(std::isinf(std::get<OnlineProgress>(*same).loss));
  EXPECT_TRUE(std::isnan(std::get<OnlineProgress>(*same).auc));
  EXPECT_EQ(std::get<OnlineProgress>(*same).pass_seconds, online.pass_seconds);

  const auto reading = decode_reading(encode_reading(batch.reading));
  ASSERT_TRUE(reading) << reading.error().message;
  EXPECT_EQ(live_line(*reading), live_line(batch.reading));
  EXPECT_EQ(decode_reading("1 2").error().code, Code::kCorrupt);
  EXPECT_EQ(decode_reading("1 2 x 4").error().code, Code::kCorrupt);
}

}  // namespace
}  // namespace pscloud

#include "learn/online_settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "io/config_file.h"
#include "io/file_store.h"
#include "learn/config.pb.h"

namespace pscloud {
namespace {

using PS::LM::Config;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

Result<OnlineSettings> settings_of(std::string_view text) {
  Config config;
  TRY(parse_config(text, "x.conf", config));
  return online_settings(config);
}

// A config that is complete, and more.
Result<OnlineSettings> with(const std::string& more) {
  return settings_of("training_data { format: TEXT text: LIBSVM file: 'a' } loss { type: LOGIT }" + more);
}
constexpr const char* kFtrl = "async_sgd { algo: FTRL }";
constexpr const char* kRate = "learning_rate { type: DECAY alpha: .5 beta: 2 }";

TEST(OnlineSettings, EarlyStopNeedsValidationData) {
  PS::LM::Config config;
  const std::string text =
      "training_data { format: TEXT text: LIBSVM file: 'a' } loss { type: LOGIT } learning_rate { alpha: 1 }"
      "async_sgd { algo: FTRL } early_stop { patience: 3 }";
  ASSERT_TRUE(parse_config(text, "x", config));
  EXPECT_THAT(online_settings(config).error().message, HasSubstr("early_stop needs validation_data"));
  ASSERT_TRUE(parse_config(text + "validation_data { format: TEXT text: LIBSVM file: 'b' }", "x", config));
  EXPECT_EQ(online_settings(config).value().validation.early_stop.patience, 3u);
  config.mutable_early_stop()->set_min_decrease(1);
  EXPECT_THAT(online_settings(config).error().message, HasSubstr("early_stop.min_decrease is 1"));
}

TEST(OnlineSettings, TheClickExampleIsUnderstood) {
  Config config;
  ASSERT_TRUE(read_config(*make_local_store(), PSCLOUD_SOURCE_DIR "/examples/linear/ctr/online_l1lr.conf", config));
  const OnlineSettings settings = online_settings(config).value();
  EXPECT_THAT(settings.files, ElementsAre("data/ctr/train/part.*"));
  EXPECT_EQ(settings.format, ExampleFormat::kSparseBinary);
  EXPECT_EQ(settings.model->prefix, "model/ctr_online");
  EXPECT_EQ(settings.loss, Loss::kLogit);
  EXPECT_EQ(settings.minibatch, 10000u);
  EXPECT_EQ(settings.passes, 10u);
  EXPECT_EQ(settings.table.updater.name, "ftrl");
  EXPECT_THAT(settings.table.updater.numbers,
              ElementsAre(Pair("alpha", 0.01f), Pair("beta", 10), Pair("lambda1", 10), Pair("lambda2", 1)));
  const std::vector<FilterSpec> filters{{.kind = FilterKind::kKeyCaching, .once = true}, {FilterKind::kFixedPoint, 1}};
  EXPECT_EQ(settings.table.push_filters, filters);
  const std::vector<FilterSpec> pull_filters{{FilterKind::kKeyCaching}, {FilterKind::kFixedPoint, 1}};
  EXPECT_EQ(settings.table.pull_filters, pull_filters);
}

TEST(OnlineSettings, RateAndAlgorithmNameTheUpdater) {
  const auto updater = [](const std::string& sgd, const std::string& rate) {
    return with("async_sgd { " + sgd + " } learning_rate { alpha: .5 " + rate + " }").value().table.updater;
  };
  const UpdaterSpec ftrl_constant{"ftrl", {{"alpha", .5f}, {"beta", 1}, {"decay", 0}, {"lambda1", 0}, {"lambda2", 0}}};
  EXPECT_EQ(updater("algo: FTRL", ""), ftrl_constant);
  const UpdaterSpec adagrad{"adagrad", {{"learning_rate", .5f}, {"epsilon", 2}, {"lambda1", 0}, {"lambda2", 0}}};
  EXPECT_EQ(updater("algo: STANDARD", "type: DECAY beta: 2"), adagrad);
  const UpdaterSpec sgd{"sgd", {{"learning_rate", .5f}, {"lambda1", 0}, {"lambda2", 0}}};
  EXPECT_EQ(updater("algo: STANDARD", "type: CONSTANT"), sgd);
  EXPECT_EQ(updater("algo: STANDARD ada_grad: false", ""), sgd);
}

TEST(OnlineSettings, PenaltiesAreOneOrTwoNumbers) {
  const auto numbers = [](const std::string& penalty) {
    return with(std::string(kFtrl) + kRate + "penalty { " + penalty + " }").value().table.updater.numbers;
  };
  EXPECT_THAT(numbers("type: L1 lambda: 3"), testing::IsSupersetOf({Pair("lambda1", 3), Pair("lambda2", 0)}));
  EXPECT_THAT(numbers("type: L1 lambda: 3 lambda: 4"), testing::IsSupersetOf({Pair("lambda1", 3), Pair("lambda2", 4)}));
  EXPECT_THAT(numbers("type: L2 lambda: 5"), testing::IsSupersetOf({Pair("lambda1", 0), Pair("lambda2", 5)}));
}

TEST(OnlineSettings, WhatIsWrongIsNamed) {
  const auto refusal = [](const std::string& more) {
    const auto settings = with(more);
    return settings ? "" : settings.error().message;
  };
  const std::string rate = kRate;
  EXPECT_EQ(refusal(rate + "async_sgd { algo: FTRL minibatch: 0 }"), "async_sgd.minibatch is 0, must be 1 or more");
  EXPECT_EQ(refusal(rate + "async_sgd { algo: FTRL max_delay: -1 }"), "async_sgd.max_delay is -1, must be 0 or more");
  EXPECT_EQ(refusal(rate + "async_sgd { algo: FTRL data_buf: 0 }"), "async_sgd.data_buf is 0, must be 1 or more");
  EXPECT_THAT(refusal(kFtrl), testing::StartsWith("learning_rate is missing"));
  EXPECT_EQ(refusal(std::string(kFtrl) + "learning_rate {}"), "learning_rate.alpha is 0, must be above 0");
  EXPECT_EQ(refusal(rate + kFtrl + "penalty { type: L2 lambda: 1 lambda: 2 }"),
            "penalty L2 has 2 lambdas, must have 1");
  EXPECT_EQ(refusal(rate + kFtrl + "penalty { type: L1 lambda: -1 }"), "penalty.lambda is -1, must be 0 or more");
  EXPECT_EQ(refusal(rate + kFtrl + "penalty { type: L1 lambda: 1 lambda: -1 }"),
            "penalty.lambda[1] is -1, must be 0 or more");
  EXPECT_EQ(refusal(rate + "async_sgd { algo: FTRL push_filter { type: FIXING_FLOAT num_bytes: 4 } }"),
            "async_sgd.push_filter.num_bytes is 4, must be 1, 2 or 3");
  EXPECT_EQ(refusal(rate + "async_sgd { algo: FTRL pull_filter { type: KEY_CACHING } "
                           "pull_filter { type: FIXING_FLOAT num_bytes: 4 } }"),
            "async_sgd.pull_filter[1].num_bytes is 4, must be 1, 2 or 3");
  EXPECT_THAT(refusal(rate + "async_sgd { algo: STANDARD ada_grad: false }"), HasSubstr("needs async_sgd.ada_grad"));
  EXPECT_THAT(refusal(rate + kFtrl + "model_output { format: PROTO file: 'm' }"), HasSubstr("format: TEXT"));
  EXPECT_THAT(refusal(rate + kFtrl + "checkpoint {}"), HasSubstr("checkpoint.folder is missing"));
  EXPECT_THAT(refusal(rate + kFtrl + "checkpoint { folder: 'c' keep: 0 }"), HasSubstr("keep is 0, must be 1 or more"));
  EXPECT_THAT(refusal(rate + "async_sgd { algo: FTRL local_cache { format: TEXT file: 'c' } }"),
              HasSubstr("async_sgd.local_cache must have format: BIN and one file"));
  EXPECT_THAT(settings_of(kFtrl).error().message, HasSubstr("training_data is missing"));
  EXPECT_THAT(with(rate).error().message, HasSubstr("async_sgd is missing"));
}

TEST(OnlineSettings, FieldsOfDataChooseExamplesOrAreRefused) {
  const auto selection = [](const std::string& fields) {
    return settings_of("training_data { format: TEXT file: 'a' " + fields + " } loss { type: LOGIT }" + kFtrl + kRate);
  };
  EXPECT_EQ(selection("").value().selection, DataSelection());
  const DataSelection all{
      .files_per_worker_max = 2, .lines_per_file_max = 5, .begin = 1, .end = 9, .replica = 3, .shuffle = true};
  EXPECT_EQ(selection("range { begin: 1 end: 9 } max_num_files_per_worker: 2 max_num_lines_per_file: 5 replica: 3 "
                      "shuffle: true")
                .value()
                .selection,
            all);
  EXPECT_EQ(selection("range { begin: 2 end: 2 }").error().message,
            "training_data.range goes from 2 to 2: it has no examples");
  EXPECT_EQ(selection("max_num_lines_per_file: 0").error().message,
            "training_data.max_num_lines_per_file is 0: nothing would be left; -1 is all");
  EXPECT_EQ(selection("replica: 0").error().message, "training_data.replica is 0, must be 1 or more");
  EXPECT_THAT(selection("hdfs {}").error().message, HasSubstr("training_data.hdfs: HDFS cannot be read"));
}

}  // namespace
}  // namespace pscloud

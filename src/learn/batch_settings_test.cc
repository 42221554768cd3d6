#include "learn/batch_settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "io/config_file.h"
#include "learn/config.pb.h"

namespace pscloud {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kBatch = R"(
  training_data { format: TEXT text: SPARSE_BINARY file: "data/part.*" }
  model_output { format: TEXT file: "model/x" }
  loss { type: LOGIT } penalty { type: L1 lambda: 10 } learning_rate { type: CONSTANT alpha: .9 }
)";

Result<BatchSettings> settings_of(const std::string& text) {
  PS::LM::Config config;
  const auto parsed = parse_config(std::string(kBatch) + text, "x.conf", config);
  EXPECT_TRUE(parsed) << parsed.error().message;
  return batch_settings(config);
}

std::string refusal_of(const std::string& text) {
  const auto settings = settings_of(text);
  return settings ? "taken" : settings.error().message;
}

TEST(BatchSettings, AreWhatTheConfigSays) {
  const auto settings = settings_of(R"(darlin { max_pass_of_data: 20 epsilon: 2e-5 feature_block_ratio: 3
    max_block_delay: 2 prior_fea_group: 127 prior_fea_group: 120 tail_feature_freq: 4 countmin_n_ratio: .66
    local_cache { format: BIN file: "cache/x_" } comm_filter { type: KEY_CACHING } save_model_every_n_iter: 7
    [PS.LM.delta_max_value]: 4 init_w { type: GAUSSIAN mean: 1 std: 2 } })");
  ASSERT_TRUE(settings) << settings.error().message;
  EXPECT_EQ(settings->iterations, 20u);
  EXPECT_EQ(settings->epsilon, 2e-5);
  EXPECT_EQ(settings->blocks_per_feature, 3);
  EXPECT_EQ(settings->max_delay, 2u);
  EXPECT_THAT(settings->prior_groups, ElementsAre(127, 120));
  EXPECT_EQ(settings->tail.frequency, 4u);
  EXPECT_EQ(settings->cache_prefix, "cache/x_");
  EXPECT_EQ(settings->save_every, 7u);
  EXPECT_EQ(settings->filters.size(), 1u);
  EXPECT_EQ(settings->descent.rule.lambda1, 10);
  EXPECT_EQ(settings->descent.rule.rate, .9);
  EXPECT_EQ(settings->descent.rule.delta_max, 4);
  EXPECT_EQ(settings->descent.delta, 1);
  EXPECT_EQ(settings->start.mean, 1);
  EXPECT_EQ(settings->start.stddev, 2);
}

TEST(BatchSettings, TellWhichFieldHasNoEffect) {
  EXPECT_THAT(settings_of("darlin {}")->no_effect, ElementsAre());
  const auto settings =
      settings_of("darlin { max_num_parallel_groups_in_preprocessing: 2 max_data_buf_size_in_mb: 3 }");
  EXPECT_EQ(settings->ahead_bytes_max, 3'000'000u);
  EXPECT_THAT(settings->no_effect,
              ElementsAre(HasSubstr("darlin.max_num_parallel_groups_in_preprocessing has no effect")));
  EXPECT_THAT(settings_of("darlin { init_w { type: CLONE } }")->no_effect,
              ElementsAre(HasSubstr("darlin.init_w.type CLONE has no effect")));
}

TEST(BatchSettings, NameTheFieldThatIsWrong) {
  EXPECT_THAT(refusal_of(""), HasSubstr("darlin is missing"));
  EXPECT_THAT(refusal_of("darlin {} factorization_machine { dim: 2 }"), HasSubstr("needs async_sgd instead"));
  EXPECT_THAT(refusal_of("darlin { feature_block_ratio: 0 }"), HasSubstr("darlin.feature_block_ratio is 0"));
  EXPECT_THAT(refusal_of("darlin { max_block_delay: -1 }"), HasSubstr("darlin.max_block_delay is -1"));
  EXPECT_THAT(refusal_of("darlin { prior_fea_group: 70000 }"), HasSubstr("darlin.prior_fea_group is 70000"));
  EXPECT_THAT(refusal_of("darlin { prior_fea_group: [1, -1] }"), HasSubstr("darlin.prior_fea_group[1] is -1"));
  EXPECT_THAT(refusal_of("darlin { tail_feature_freq: 254 }"), HasSubstr("darlin.tail_feature_freq is 254"));
  EXPECT_THAT(refusal_of("darlin { max_data_buf_size_in_mb: 0 }"), HasSubstr("max_data_buf_size_in_mb is 0"));
  EXPECT_THAT(refusal_of("darlin { epsilon: nan }"), HasSubstr("darlin.epsilon"));
  EXPECT_THAT(refusal_of("darlin { init_w { type: FILE } }"), HasSubstr("init_w.file_name"));
  EXPECT_THAT(refusal_of("darlin { local_cache { format: TEXT file: 'x' } }"), HasSubstr("darlin.local_cache"));
  EXPECT_THAT(refusal_of("darlin { [PS.LM.delta_init_value]: 0 }"), HasSubstr("delta_init_value"));
}

}  // namespace
}  // namespace pscloud

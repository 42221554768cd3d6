#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "io/config_file.h"
#include "io/file_store.h"
#include "learn/config.pb.h"

namespace pscloud {
namespace {

using PS::LM::Config;
using testing::ElementsAre;

Config parsed(std::string_view text) {
  Config config;
  const auto result = parse_config(text, "x.conf", config);
  EXPECT_TRUE(result) << result.error().message;
  return config;
}

TEST(Config, EveryExampleIsRead) {
  const auto store = make_local_store();
  int count = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(PSCLOUD_SOURCE_DIR "/examples")) {
    if (entry.path().extension() != ".conf") continue;
    Config config;
    const auto result = read_config(*store, entry.path(), config);
    EXPECT_TRUE(result) << result.error().message;
    EXPECT_EQ(config.has_async_sgd() + config.has_darlin() + config.has_validation_data(), 1) << entry.path();
    ++count;
  }
  EXPECT_EQ(count, 14);
}

TEST(Config, DefaultsAreThoseOfTheOriginal) {
  const Config online = parsed("async_sgd { algo: FTRL }");
  EXPECT_EQ(online.async_sgd().minibatch(), 1000);
  EXPECT_EQ(online.async_sgd().num_data_pass(), 1);
  EXPECT_EQ(online.async_sgd().countmin_n(), 1e8f);
  const Config batch = parsed("darlin {}");
  EXPECT_EQ(batch.darlin().max_pass_of_data(), 10);
  EXPECT_EQ(batch.darlin().epsilon(), 1e-4);
  EXPECT_EQ(batch.darlin().GetExtension(PS::LM::delta_max_value), 5);
  EXPECT_EQ(batch.darlin().GetExtension(PS::LM::kkt_filter_threshold_ratio), 10);
}

TEST(Config, ExtensionsAreNamedAsTheOriginalDoes) {
  const Config config = parsed("darlin { [PS.LM.delta_max_value]: 7 [PS.LM.kkt_filter_threshold_ratio] : 1e20 }");
  EXPECT_EQ(config.darlin().GetExtension(PS::LM::delta_max_value), 7);
  EXPECT_EQ(config.darlin().GetExtension(PS::LM::kkt_filter_threshold_ratio), 1e20);
}

TEST(Config, ExtensionsAreSetByTheirShortNames) {
  Config config;
  for (const char* one : {"darlin.delta_max_value=7", "darlin.[PS.LM.kkt_filter_threshold_ratio]=1e20"}) {
    const auto set = set_config_field(one, config);
    EXPECT_TRUE(set) << set.error().message;
  }
  EXPECT_EQ(config.darlin().GetExtension(PS::LM::delta_max_value), 7);
  EXPECT_EQ(config.darlin().GetExtension(PS::LM::kkt_filter_threshold_ratio), 1e20);
  EXPECT_EQ(set_config_field("darlin.delta_mx_value=7", config).error().message,
            "darlin.delta_mx_value: there is no field delta_mx_value; did you mean delta_max_value?");
  EXPECT_EQ(config_place("darlin {\n  epsilon: 1\n  [PS.LM.delta_max_value]: 7 }", "darlin.delta_max_value", config),
            "3:3");
  EXPECT_EQ(parse_config("darlin { delta_max_value: 7 }", "x.conf", config).error().message,
            "x.conf:1:10: there is no field delta_max_value here; it is written [PS.LM.delta_max_value]");
}

TEST(Config, RepeatedFieldsKeepTheirOrder) {
  EXPECT_THAT(parsed("penalty { type: L1 lambda: 10 lambda: .5 }").penalty().lambda(), ElementsAre(10, 0.5));
}

TEST(Config, MistakesAreNamedWithTheirPlace) {
  Config config;
  EXPECT_EQ(parse_config("loss {\n  type: LOGTI\n}", "ctr.conf", config).error().message,
            "ctr.conf:2:9: LOGTI is no value of type here; did you mean LOGIT?");
  EXPECT_EQ(parse_config("async_sgd {\n  algo: FTRL\n  minibach: 5\n}", "ctr.conf", config).error().message,
            "ctr.conf:3:3: there is no field minibach here; did you mean minibatch?");
  EXPECT_EQ(parse_config("loss { type: L1 }", "ctr.conf", config).error().message,
            "ctr.conf:1:14: L1 is no value of type here");
  EXPECT_EQ(parse_config("loss { }", "ctr.conf", config).error().message, "ctr.conf:1:1: missing: loss.type");
}

}  // namespace
}  // namespace pscloud

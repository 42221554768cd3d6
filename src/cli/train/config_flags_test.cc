#include "cli/train/config_flags.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "learn/config.pb.h"

namespace pscloud {
namespace {

using testing::ElementsAre;

TEST(ConfigFlags, AConfigMayBeWrappedAsItWasOnce) {
  PS::LM::Config config;
  ASSERT_TRUE(parse_learning_config("# old\n\n linear_method {\n  loss { type: HINGE }\n}\n", "x.conf", config));
  EXPECT_EQ(config.loss().type(), PS::LM::LossConfig::HINGE);
  ASSERT_TRUE(parse_learning_config("loss { type: LOGIT }", "x.conf", config));
  EXPECT_EQ(config.loss().type(), PS::LM::LossConfig::LOGIT);
  EXPECT_EQ(parse_learning_config("linear_method {\n  los { }\n}", "x.conf", config).error().message,
            "x.conf:2:3: there is no field los here; did you mean loss?");
}

TEST(ConfigFlags, AFieldIsWhereItWasSaid) {
  const std::string file = fmt::format("{}/config_flags_{}.conf", testing::TempDir(), ::getpid());
  std::ofstream(file) << "training_data {\n  file: 'a'\n  file: 'b'\n}\nasync_sgd { minibatch: 5 }\n";
  const ConfigFlags flags{.file = file,
                          .appended = "loss { type: LOGIT }",
                          .assignments = {"async_sgd.minibatch=-5", "async_sgd.local_cache.format=TEXT"}};
  EXPECT_EQ(place_in_config(flags, "async_sgd.minibatch is -5"), "--set");
  EXPECT_EQ(place_in_config(flags, "async_sgd.local_cache must have a file"), "--set");
  EXPECT_EQ(place_in_config(flags, "async_sgd.mini is no prefix"), file + ":5:1");
  EXPECT_EQ(place_in_config(flags, "training_data.file[1]: not there"), file + ":3:3");
  EXPECT_EQ(place_in_config(flags, "loss.type is 9"), "--append:1:8");
  EXPECT_EQ(place_in_config(flags, "penalty is missing"), file);
  ::unlink(file.c_str());
}

TEST(ConfigFlags, AnotherProcessIsToldAllOfThem) {
  EXPECT_THAT(words_of({.file = "x.conf", .appended = "a", .assignments = {"b=1", "c=2"}, .strict = true}),
              ElementsAre("x.conf", "--append", "a", "--set", "b=1", "--set", "c=2", "--strict"));
  EXPECT_THAT(words_of({.file = "x.conf", .appended = "", .assignments = {}, .strict = false}), ElementsAre("x.conf"));
}

}  // namespace
}  // namespace pscloud

#include "cli/train/config_flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

TEST(ConfigFlags, AnotherProcessIsToldAllOfThem) {
  EXPECT_THAT(words_of({.file = "x.conf", .appended = "a", .assignments = {"b=1", "c=2"}, .strict = true}),
              ElementsAre("x.conf", "--append", "a", "--set", "b=1", "--set", "c=2", "--strict"));
  EXPECT_THAT(words_of({.file = "x.conf", .appended = "", .assignments = {}, .strict = false}), ElementsAre("x.conf"));
}

}  // namespace
}  // namespace pscloud

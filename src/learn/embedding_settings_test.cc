#include "learn/embedding_settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "io/config_file.h"
#include "learn/config.pb.h"
#include "learn/online_settings.h"

namespace pscloud {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::Pair;

// Of a config that trains, with these fields of factorization_machine.
Result<OnlineSettings> settings_with(const std::string& fields) {
  PS::LM::Config config;
  TRY(
      parse_config("training_data { format: TEXT text: LIBSVM file: 'a' } loss { type: LOGIT } "
                   "learning_rate { alpha: .5 } async_sgd { algo: FTRL push_filter { type: COMPRESSING } } "
                   "factorization_machine { " +
                       fields + " }",
                   "x.conf", config));
  return online_settings(config);
}

TEST(EmbeddingSettings, EveryFieldIsUnderstood) {
  const OnlineSettings settings =
      settings_with(
          "dim: 5 threshold: 3 lambda_l2: .25 alpha: .125 beta: 2 init_scale: .5 dropout: .75 grad_clipping: 4 seed: 9")
          .value();
  const EmbeddingSettings& embeddings = settings.embeddings.value();
  EXPECT_EQ(embeddings.table.width, 5u);
  EXPECT_EQ(embeddings.table.updater.name, "adagrad");
  EXPECT_THAT(embeddings.table.updater.numbers, ElementsAre(Pair("learning_rate", .125f), Pair("epsilon", 2)));
  EXPECT_EQ(embeddings.table.initial, (InitialValues{-.5f, .5f, 9}));
  EXPECT_EQ(embeddings.table.push_filters, settings.table.push_filters);
  EXPECT_EQ(embeddings.counts.value().updater.name, "add");
  EXPECT_EQ(embeddings.threshold, 3u);
  EXPECT_TRUE(embeddings.l1_shrink);
  EXPECT_EQ(embeddings.lambda2, .25f);
  EXPECT_EQ(embeddings.dropout, .75f);
  EXPECT_EQ(embeddings.grad_clipping, 4);
  EXPECT_EQ(embeddings.seed, 9u);
}

TEST(EmbeddingSettings, KeysAreCountedOnlyWhereThatMatters) {
  EXPECT_FALSE(settings_with("dim: 1 threshold: 0").value().embeddings->counts);
  EXPECT_TRUE(settings_with("dim: 1 threshold: 1").value().embeddings->counts);
  // Who has not been seen must not have one, though others with a weight of zero do.
  EXPECT_TRUE(settings_with("dim: 1 threshold: 0 l1_shrink: false").value().embeddings->counts);
}

TEST(EmbeddingSettings, WhatIsWrongIsNamed) {
  const auto refusal = [](const std::string& fields) {
    const auto settings = settings_with(fields);
    return settings ? "" : settings.error().message;
  };
  EXPECT_EQ(refusal(""), "x.conf:1:163: missing: factorization_machine.dim");
  EXPECT_EQ(refusal("dim: 0"), "factorization_machine.dim is 0, must be 1 to 65536");
  EXPECT_EQ(refusal("dim: 70000"), "factorization_machine.dim is 70000, must be 1 to 65536");
  EXPECT_EQ(refusal("dim: 1 threshold: -1"),
            "factorization_machine.threshold is -1, must be 0 or more and below 16777216");
  EXPECT_EQ(refusal("dim: 1 alpha: 0"), "factorization_machine.alpha is 0, must be above 0");
  EXPECT_EQ(refusal("dim: 1 alpha: inf"), "factorization_machine.alpha is inf, must be above 0");
  EXPECT_EQ(refusal("dim: 1 beta: -1"), "factorization_machine.beta is -1, must be 0 or more");
  EXPECT_EQ(refusal("dim: 1 init_scale: 0"), "factorization_machine.init_scale is 0, must be above 0");
  EXPECT_EQ(refusal("dim: 1 lambda_l2: nan"), "factorization_machine.lambda_l2 is nan, must be 0 or more");
  EXPECT_EQ(refusal("dim: 1 grad_clipping: -1"), "factorization_machine.grad_clipping is -1, must be 0 or more");
  EXPECT_EQ(refusal("dim: 1 dropout: 1"), "factorization_machine.dropout is 1, must be 0 or more and below 1");
}

TEST(EmbeddingSettings, ClippingCutsWhatIsTooLarge) {
  std::vector<float> gradient{-7, -2, 0, 1, 3};
  Random random(1);
  finish_gradient({.grad_clipping = 2}, std::vector<float>(5), random, gradient);
  EXPECT_THAT(gradient, ElementsAre(-2, -2, 0, 1, 2));
  finish_gradient({}, std::vector<float>(5), random, gradient);
  EXPECT_THAT(gradient, ElementsAre(-2, -2, 0, 1, 2));
}

TEST(EmbeddingSettings, DropoutLeavesOutItsShare) {
  std::vector<float> gradient(10000, 3);
  Random random(1);
  finish_gradient({.dropout = 0.25f}, std::vector<float>(10000), random, gradient);
  EXPECT_THAT(gradient, Each(testing::AnyOf(0, 3)));
  EXPECT_NEAR(static_cast<double>(std::ranges::count(gradient, 0.0f)), 2500, 200);  // 4.6 deviations
}

TEST(EmbeddingSettings, ThePenaltyPullsToZeroWhateverTheGradient) {
  std::vector<float> gradient{100, 0};
  Random random(1);
  finish_gradient({.lambda2 = 0.5f, .grad_clipping = 1}, std::vector<float>{4, -6}, random, gradient);
  EXPECT_THAT(gradient, ElementsAre(1 + 2, -3));
}

}  // namespace
}  // namespace pscloud

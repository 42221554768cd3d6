#include "learn/score_quality.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "base/random.h"

namespace pscloud {
namespace {

TEST(ScoreQuality, AucIsOneForARightOrderAndZeroForTheReverse) {
  const std::vector<float> labels{0, -1, 1, 1};
  EXPECT_EQ(auc(labels, std::vector<float>{-2, -1, 0, 3}), 1.0);
  EXPECT_EQ(auc(labels, std::vector<float>{2, 1, 0, -3}), 0.0);
}

TEST(ScoreQuality, EqualScoresCountHalf) {
  EXPECT_EQ(auc(std::vector<float>{1, -1, 1, -1}, std::vector<float>(4, 0.0f)), 0.5);
  EXPECT_EQ(auc(std::vector<float>{1, -1, -1}, std::vector<float>{1, 1, 0}), 0.75);
}

TEST(ScoreQuality, WithOneKindAloneThereIsNothingToTell) {
  EXPECT_EQ(auc(std::vector<float>{1, 1}, std::vector<float>{1, 2}), 0.5);
  EXPECT_EQ(auc({}, {}), 0.5);
}

double share_of_pairs_in_order(const std::vector<float>& labels, const std::vector<float>& scores) {
  double pairs = 0;
  double wins = 0;
  for (size_t i = 0; i < labels.size(); ++i) {
    for (size_t j = 0; j < labels.size(); ++j) {
      if (labels[i] < 0 || labels[j] > 0) continue;
      ++pairs;
      wins += scores[i] > scores[j] ? 1 : scores[i] == scores[j] ? 0.5 : 0;
    }
  }
  return pairs == 0 ? 0.5 : wins / pairs;
}

RC_GTEST_PROP(ScoreQuality, AucIsTheShareOfPairsInOrder, (std::vector<std::pair<bool, int8_t>> examples)) {
  std::vector<float> labels;
  std::vector<float> scores;
  for (const auto& [label, score] : examples) {
    labels.push_back(label ? 1.0f : -1.0f);
    scores.push_back(score / 8);
  }
  RC_ASSERT(std::abs(auc(labels, scores) - share_of_pairs_in_order(labels, scores)) < 1e-12);
}

TEST(ScoreQuality, SoItIsOfMany) {
  Random random(4);
  std::vector<float> labels;
  std::vector<float> scores;
  for (int i = 0; i < 1000; ++i) {
    labels.push_back(random.chance(0.3) ? 1.0f : -1.0f);
    scores.push_back(static_cast<float>(random.normal(0, 1) * std::pow(10.0, random.below(7))));
  }
  scores[5] = scores[6] = std::numeric_limits<float>::infinity();
  scores[7] = scores[8] = -std::numeric_limits<float>::infinity();
  EXPECT_NEAR(auc(labels, scores), share_of_pairs_in_order(labels, scores), 1e-12);
}

TEST(ScoreQuality, ScoresThatAreNoNumbersAreWrong) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> labels{1, -1, 1, -1};
  EXPECT_EQ(auc(labels, std::vector<float>{nan, -5, 0, nan}), 0.25);
  EXPECT_EQ(count_right(labels, std::vector<float>{nan, -5, 1, nan}), 2u);
}

TEST(ScoreQuality, RightHasTheSignOfTheLabel) {
  EXPECT_EQ(count_right(std::vector<float>{1, 1, 0, -1, 1}, std::vector<float>{2, -2, -1, 0, 0}), 3u);
}

}  // namespace
}  // namespace pscloud

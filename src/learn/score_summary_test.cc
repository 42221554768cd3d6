#include "learn/score_summary.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "base/random.h"
#include "learn/score_quality.h"

namespace pscloud {
namespace {

struct Scored {
  std::vector<float> labels;
  std::vector<float> scores;
};

// Scores that know something of their labels.
Scored some_scores(size_t count, uint64_t seed) {
  Random random(seed);
  Scored scored;
  for (size_t i = 0; i < count; ++i) {
    const float label = random.below(4) == 0 ? 1.0f : 0.0f;
    scored.labels.push_back(label);
    scored.scores.push_back(random.normal(label - 1.5f, 1));
  }
  return scored;
}

TEST(ScoreSummary, AgreesWithTheExactFigures) {
  const Scored scored = some_scores(100000, 1);
  ScoreSummary summary;
  summary.add(scored.labels, scored.scores);
  EXPECT_EQ(summary.examples(), 100000u);
  EXPECT_NEAR(summary.auc(), auc(scored.labels, scored.scores), 1e-6);
  EXPECT_DOUBLE_EQ(summary.accuracy(), static_cast<double>(count_right(scored.labels, scored.scores)) / 1e5);
  double loss = 0;
  for (size_t i = 0; i < scored.labels.size(); ++i) {
    const double p = 1 / (1 + std::exp(-static_cast<double>(scored.scores[i])));
    loss -= std::log(scored.labels[i] > 0 ? p : 1 - p);
  }
  EXPECT_NEAR(summary.logloss(), loss / 1e5, 1e-9);
}

TEST(ScoreSummary, PartsAddUpToTheWhole) {
  const Scored one = some_scores(1000, 2);
  const Scored two = some_scores(3000, 3);
  ScoreSummary all;
  all.add(one.labels, one.scores);
  all.add(two.labels, two.scores);
  ScoreSummary first;
  first.add(one.labels, one.scores);
  ScoreSummary second;
  second.add(two.labels, two.scores);
  first.add(second);
  EXPECT_EQ(first.examples(), 4000u);
  EXPECT_EQ(first.auc(), all.auc());
  EXPECT_EQ(first.accuracy(), all.accuracy());
  EXPECT_NEAR(first.logloss(), all.logloss(), 1e-12);
}

TEST(ScoreSummary, EqualScoresCountHalfAndBothZerosAreEqual) {
  ScoreSummary summary;
  summary.add(std::vector<float>{1, -1, 1, -1}, std::vector<float>{0.0f, -0.0f, -0.0f, 0.0f});
  EXPECT_EQ(summary.auc(), 0.5);
}

TEST(ScoreSummary, ExtremesAreInOrderAndTheLossStaysFinite) {
  const float infinity = std::numeric_limits<float>::infinity();
  ScoreSummary summary;
  summary.add(std::vector<float>{-1, -1, 1, 1}, std::vector<float>{-infinity, -1e38f, 1e-38f, infinity});
  EXPECT_EQ(summary.auc(), 1);
  EXPECT_EQ(summary.accuracy(), 1);
  EXPECT_NEAR(summary.logloss(), std::log(2.0) / 4, 1e-9);
  ScoreSummary wrong;
  wrong.add(std::vector<float>{1, -1}, std::vector<float>{-infinity, std::nanf("")});
  EXPECT_NEAR(wrong.logloss(), -std::log(1e-15), 1e-9);
  EXPECT_EQ(wrong.accuracy(), 0);
  EXPECT_EQ(wrong.auc(), 0);
}

TEST(ScoreSummary, NothingIsNoReasonToFail) {
  const ScoreSummary summary;
  EXPECT_EQ(summary.auc(), 0.5);
  EXPECT_EQ(summary.accuracy(), 0);
  EXPECT_EQ(summary.logloss(), 0);
}

TEST(ScoreSummary, ComesBackFromASumOfTallies) {
  ScoreSummary first;
  first.add(std::vector<float>{1, 0, 1}, std::vector<float>{0.5f, -0.5f, 3});
  ScoreSummary second;
  second.add(std::vector<float>{0, 1}, std::vector<float>{0.5f, -8});
  std::vector<double> tally(ScoreSummary::kPlaces);
  for (const auto* part : {&first, &second}) {
    for (const Addend& addend : part->addends()) tally.at(addend.place) += addend.value;
  }
  ScoreSummary both;
  constexpr uint32_t kCut = 1'000'001;
  both.add_sums(0, std::span(tally).first(kCut));
  both.add_sums(kCut, std::span(tally).subspan(kCut));
  first.add(second);
  EXPECT_EQ(both.examples(), 5u);
  EXPECT_EQ(both.auc(), first.auc());
  EXPECT_EQ(both.accuracy(), first.accuracy());
  EXPECT_NEAR(both.logloss(), first.logloss(), 1e-6);
}

TEST(ScoreSummary, TalliesAddUpToTheSameLossInAnyOrder) {
  std::vector<double> losses;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const Scored scored = some_scores(100, seed);
    ScoreSummary part;
    part.add(scored.labels, scored.scores);
    losses.push_back(part.addends()[2].value);
  }
  const double forth = std::accumulate(losses.begin(), losses.end(), 0.0);
  EXPECT_EQ(forth, std::accumulate(losses.rbegin(), losses.rend(), 0.0));
  EXPECT_GT(forth, 100);
}

}  // namespace
}  // namespace pscloud

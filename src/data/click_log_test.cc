#include "data/click_log.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace pscloud {
namespace {

TEST(ClickLog, ExamplesHaveTheirFeaturesInOrder) {
  ClickLog log({.keys = 2600});
  RowBlock block;
  for (int i = 0; i < 100; ++i) log.next(block);
  ASSERT_EQ(block.rows(), 100u);
  for (size_t row = 0; row < block.rows(); ++row) {
    const auto keys = block.keys_of(row);
    EXPECT_EQ(keys.size(), 39u);
    EXPECT_TRUE(std::ranges::adjacent_find(keys, std::greater_equal<>()) == keys.end());
    EXPECT_LE(keys.back(), 13u + 2600u);
    EXPECT_TRUE(block.labels[row] == 0 || block.labels[row] == 1);
  }
  EXPECT_EQ(block.groups[0], 1);
  EXPECT_EQ(block.groups[38], 39);
}

TEST(ClickLog, SeedsDecideExamplesAndModelApart) {
  const auto first = [](uint64_t model_seed, uint64_t seed) {
    RowBlock block;
    const float score = ClickLog({.model_seed = model_seed, .seed = seed}).next(block);
    return std::pair(block.keys, score);
  };
  EXPECT_EQ(first(1, 1), first(1, 1));
  EXPECT_EQ(first(1, 1).first, first(2, 1).first);
  EXPECT_NE(first(1, 1).second, first(2, 1).second);
  EXPECT_NE(first(1, 1).first, first(1, 2).first);
}

TEST(ClickLog, InteractionsChangeScoresByTheirStrengthAndNothingElse) {
  for (const double strength : {0.5, 2.0}) {
    ClickLog linear({.keys = 26000, .zipf = 0});
    ClickLog with({.keys = 26000, .zipf = 0, .interactions = 4, .interaction_strength = strength});
    RowBlock block;
    double sum = 0, squares = 0;
    constexpr int kExamples = 2000;
    for (int i = 0; i < kExamples; ++i) {
      block.clear();
      const float without = linear.next(block);
      const double more = with.next(block) - without;
      EXPECT_TRUE(std::ranges::equal(block.keys_of(0), block.keys_of(1)));
      sum += more;
      squares += more * more;
    }
    const double deviation = std::sqrt(squares / kExamples - sum * sum / kExamples / kExamples);
    EXPECT_NEAR(deviation, strength, 0.1 * strength);
  }
}

// With two categories of two keys there are four products of hidden vectors, a matrix of their rank.
TEST(ClickLog, InteractionsAreOfTheirRank) {
  for (const uint32_t rank : {1u, 2u}) {
    const ClickLog::Options options{.counts = 0, .categories = 2, .keys = 4, .zipf = 0, .interactions = rank};
    ClickLog::Options without = options;
    without.interactions = 0;
    ClickLog with_pairs(options), linear(without);
    double product[2][2] = {};
    for (int i = 0; i < 50; ++i) {
      RowBlock block;
      const double more = with_pairs.next(block) - static_cast<double>(linear.next(block));
      product[block.keys[0] - 1][block.keys[1] - 3] = more;  // the keys are 1 and 2, and 3 and 4
    }
    const double determinant = product[0][0] * product[1][1] - product[0][1] * product[1][0];
    EXPECT_GT(std::abs(product[0][0]), 1e-3);
    EXPECT_EQ(std::abs(determinant) > 1e-4, rank == 2) << determinant;
  }
}

// Clicks come as often as the scores say, be these high or low.
TEST(ClickLog, ScoresAreRightAboutTheChanceOfAClick) {
  ClickLog log({.keys = 26000, .interactions = 4});
  RowBlock block;
  struct Bin {
    double expected = 0;
    double clicks = 0;
    double examples = 0;
  };
  std::map<int, Bin> bins;
  for (int i = 0; i < 50000; ++i) {
    block.clear();
    const float score = log.next(block);
    Bin& bin = bins[static_cast<int>(std::floor(score))];
    bin.expected += 1 / (1 + std::exp(-score));
    bin.clicks += block.labels[0];
    bin.examples += 1;
  }
  EXPECT_GE(bins.size(), 4u);
  for (const auto& [score, bin] : bins) EXPECT_NEAR(bin.clicks, bin.expected, 5 * std::sqrt(bin.examples) / 2) << score;
}

}  // namespace
}  // namespace pscloud

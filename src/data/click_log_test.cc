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
  EXPECT_EQ(block.groups[38], 38);
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

// Clicks come as often as the scores say, be these high or low.
TEST(ClickLog, ScoresAreRightAboutTheChanceOfAClick) {
  ClickLog log({.keys = 26000});
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

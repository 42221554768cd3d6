#include "base/random.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <vector>

namespace pscloud {
namespace {

TEST(Random, TheSameSeedGivesTheSameStream) {
  Random a(7);
  Random b(7);
  for (int i = 0; i < 100; ++i) ASSERT_EQ(a.next(), b.next());
}

TEST(Random, NeighbouringSeedsGiveOtherStreams) {
  std::set<uint64_t> first;
  for (uint64_t seed = 0; seed < 1000; ++seed) first.insert(Random(seed).next());
  EXPECT_EQ(first.size(), 1000);
}

TEST(Random, TheSystemGivesAnotherSeedEachTime) {
  EXPECT_NE(Random::from_system().next(), Random::from_system().next());
}

TEST(Random, BelowStaysBelowAndFavoursNothing) {
  Random random(1);
  constexpr int kDraws = 60000;
  std::vector<int> counts(6);
  for (int i = 0; i < kDraws; ++i) ++counts.at(random.below(6));
  // 10000 each, give or take five standard deviations of a binomial: sqrt(60000 * 1/6 * 5/6) = 91.
  for (const int count : counts) EXPECT_NEAR(count, kDraws / 6, 5 * 91);
}

TEST(Random, BelowALargeBoundFavoursNothing) {
  // With bound 3 * 2^62 a plain remainder would give the lowest third twice as often as the others.
  Random random(2);
  constexpr int kDraws = 30000;
  std::vector<int> counts(3);
  for (int i = 0; i < kDraws; ++i) ++counts.at(random.below(uint64_t{3} << 62) >> 62);
  for (const int count : counts) EXPECT_NEAR(count, kDraws / 3, 5 * 82);
}

TEST(Random, BelowOneIsZero) { EXPECT_EQ(Random(3).below(1), 0); }

TEST(Random, UniformFillsTheUnitInterval) {
  Random random(4);
  constexpr int kDraws = 100000;
  double sum = 0;
  double least = 1;
  double most = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double x = random.uniform();
    sum += x;
    least = std::min(least, x);
    most = std::max(most, x);
  }
  EXPECT_GE(least, 0);
  EXPECT_LT(least, 0.001);
  EXPECT_LT(most, 1);
  EXPECT_GT(most, 0.999);
  EXPECT_NEAR(sum / kDraws, 0.5, 5 * std::sqrt(1.0 / 12 / kDraws));
}

TEST(Random, ChanceIsAsLikelyAsAsked) {
  Random random(5);
  int hits = 0;
  for (int i = 0; i < 10000; ++i) hits += random.chance(0.2);
  EXPECT_NEAR(hits, 2000, 5 * 40);
  for (int i = 0; i < 1000; ++i) {
    ASSERT_FALSE(random.chance(0));
    ASSERT_TRUE(random.chance(1));
  }
}

TEST(Random, NormalHasItsMoments) {
  Random random(6);
  constexpr int kDraws = 200000;
  const double mean = 3;
  const double stddev = 2;
  double moments[5] = {};
  for (int i = 0; i < kDraws; ++i) {
    const double z = (random.normal(static_cast<float>(mean), static_cast<float>(stddev)) - mean) / stddev;
    ASSERT_TRUE(std::isfinite(z));
    for (int m = 1; m <= 4; ++m) moments[m] += std::pow(z, m) / kDraws;
  }
  // Of the standard normal: 0, 1, 0, 3; their estimates scatter by sqrt of (1, 2, 15, 96) / draws.
  EXPECT_NEAR(moments[1], 0, 5 * std::sqrt(1.0 / kDraws));
  EXPECT_NEAR(moments[2], 1, 5 * std::sqrt(2.0 / kDraws));
  EXPECT_NEAR(moments[3], 0, 5 * std::sqrt(15.0 / kDraws));
  EXPECT_NEAR(moments[4], 3, 5 * std::sqrt(96.0 / kDraws));
}

}  // namespace
}  // namespace pscloud

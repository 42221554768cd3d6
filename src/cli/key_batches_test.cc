#include "cli/key_batches.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace pscloud {
namespace {

bool strictly_increases(const std::vector<Key>& keys) {
  return std::ranges::adjacent_find(keys, std::greater_equal<>()) == keys.end();
}

// The frequencies against their formula, (r + 1)^-s over the sum of all.
TEST(ZipfRanks, ComeAsOftenAsTheFormulaSays) {
  constexpr int kRanks = 50;
  constexpr int kDraws = 200000;
  for (const double s : {0.5, 1.0, 1.1, 2.0}) {
    const ZipfRanks zipf(kRanks, s);
    Random random(7);
    std::vector<int> counts(kRanks);
    for (int i = 0; i < kDraws; ++i) ++counts.at(zipf.draw(random));
    double sum = 0;
    for (int r = 0; r < kRanks; ++r) sum += std::pow(r + 1, -s);
    for (int r = 0; r < kRanks; ++r) {
      const double expected = kDraws * std::pow(r + 1, -s) / sum;
      EXPECT_NEAR(counts[r], expected, 5 * std::sqrt(expected)) << "rank " << r << ", s " << s;
    }
  }
}

TEST(ZipfRanks, OneRankIsAlwaysDrawn) {
  Random random(1);
  EXPECT_EQ(ZipfRanks(1, 1.1).draw(random), 0u);
}

TEST(KeyBatches, AreSortedUniqueAndOfTheirSize) {
  for (const double s : {0.0, 1.1}) {
    KeyBatches batches(100000, 2000, s, 3);
    for (int i = 0; i < 5; ++i) {
      const std::vector<Key> batch = batches.next();
      EXPECT_EQ(batch.size(), 2000u);
      EXPECT_TRUE(strictly_increases(batch));
      EXPECT_LT(batch.back(), 100000u);
    }
  }
}

TEST(KeyBatches, CanHoldEveryKey) {
  std::vector<Key> all(1000);
  std::iota(all.begin(), all.end(), 0);
  EXPECT_EQ(KeyBatches(1000, 1000, 0, 1).next(), all);
}

TEST(KeyBatches, HotKeysComeInEveryBatchOthersDoNot) {
  const auto shared = [](double s) {
    KeyBatches batches(1000000, 1000, s, 5);
    const std::vector<Key> one = batches.next(), two = batches.next();
    std::vector<Key> both;
    std::ranges::set_intersection(one, two, std::back_inserter(both));
    return both.size();
  };
  EXPECT_LT(shared(0), 20u);  // 1 expected
  EXPECT_GT(shared(1.1), 100u);
}

}  // namespace
}  // namespace pscloud

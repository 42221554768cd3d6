#include "cli/bench/key_batches.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace pscloud {
namespace {

bool strictly_increases(const std::vector<Key>& keys) {
  return std::ranges::adjacent_find(keys, std::greater_equal<>()) == keys.end();
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

#include "data/key_growth.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "data/click_log.h"

namespace pscloud {
namespace {

// How the estimate from the first rows of a made-up log compares with what all of its rows have, or the first of them:
// 1 is right.
double estimate_of_truth(double zipf, uint64_t keys, uint64_t sampled, uint64_t rows, uint64_t wanted = UINT64_MAX) {
  ClickLog log({.keys = keys, .zipf = zipf});
  KeyGrowth growth;
  std::unordered_set<Key> different;
  RowBlock block;
  for (uint64_t i = 0; i < rows; ++i) {
    block.clear();
    log.next(block);
    if (i < sampled) growth.add(block.keys);
    if (i < wanted) different.insert(block.keys.begin(), block.keys.end());
  }
  EXPECT_EQ(growth.rows(), sampled);
  EXPECT_EQ(growth.features(), 39 * sampled);
  return growth.keys_in(static_cast<double>(std::min(rows, wanted))) / static_cast<double>(different.size());
}

TEST(KeyGrowth, KeysOfTenTimesTheRowsAreFoundFromASample) {
  EXPECT_NEAR(estimate_of_truth(1.1, 20000, 1000, 10000), 1, 0.2);
  EXPECT_NEAR(estimate_of_truth(0.7, 20000, 1000, 10000), 1, 0.2);
  EXPECT_NEAR(estimate_of_truth(0, 20000, 1000, 10000), 1, 0.2);
  EXPECT_NEAR(estimate_of_truth(1.1, 10000000, 1000, 10000), 1, 0.2);  // most are new
}

// How the estimate is to the truth, of keys that come more than `often` times.
double estimate_of_common(double zipf, uint64_t keys, uint64_t sampled, uint64_t rows, uint64_t often) {
  ClickLog log({.keys = keys, .zipf = zipf});
  KeyGrowth growth;
  std::unordered_map<Key, uint64_t> counts;
  RowBlock block;
  for (uint64_t i = 0; i < rows; ++i) {
    block.clear();
    log.next(block);
    if (i < sampled) growth.add(block.keys);
    for (const Key key : block.keys) ++counts[key];
  }
  const auto common = std::ranges::count_if(counts, [&](const auto& one) { return one.second > often; });
  return growth.keys_in(static_cast<double>(rows), often) / static_cast<double>(common);
}

TEST(KeyGrowth, SoAreThoseThatComeOften) {
  EXPECT_EQ(estimate_of_common(1.1, 20000, 1000, 1000, 3), 1);
  EXPECT_NEAR(estimate_of_common(1.1, 20000, 1000, 10000, 10), 1, 0.2);
  EXPECT_NEAR(estimate_of_common(0.7, 20000, 1000, 10000, 10), 1, 0.2);
  EXPECT_NEAR(estimate_of_common(1.1, 1000000, 1000, 10000, 3), 1, 0.2);
}

TEST(KeyGrowth, OfFewerRowsThanTheSampleHasItTellsTheirs) {
  EXPECT_NEAR(estimate_of_truth(1.1, 1000000, 8000, 8000, 3000), 1, 0.1);
  EXPECT_NEAR(estimate_of_truth(1.1, 1000000, 8000, 8000, 300), 1, 0.2);
  EXPECT_NEAR(estimate_of_truth(1.1, 2000, 8000, 8000, 3000), 1, 0.1);
  KeyGrowth growth;
  growth.add(std::vector<Key>{5, 6});
  EXPECT_EQ(growth.keys_in(0.5), 1);
}

TEST(KeyGrowth, ASampleOfAllIsCounted) { EXPECT_EQ(estimate_of_truth(1.1, 20000, 500, 500), 1); }

TEST(KeyGrowth, FewRowsAreEnoughToGiveANumber) {
  KeyGrowth growth;
  EXPECT_EQ(growth.keys_in(100), 0);
  growth.add({});
  EXPECT_EQ(growth.keys_in(100), 0);
  growth.add(std::vector<Key>{5});
  EXPECT_GE(growth.keys_in(100), 1);
  growth.add(std::vector<Key>{5});
  EXPECT_EQ(growth.keys_in(1e9), 1);
}

}  // namespace
}  // namespace pscloud

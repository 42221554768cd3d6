#include "learn/block_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace pscloud {
namespace {

using testing::Each;
using testing::SizeIs;

const std::map<uint16_t, GroupCount> kTwoGroups = {{3, {.features = 100, .examples = 100}},
                                                   {9, {.features = 250, .examples = 100}}};

TEST(BlockPlan, AGroupHasBlocksForTheFeaturesOfAnExample) {
  const BlockPlan plan(kTwoGroups, 4);
  EXPECT_EQ(plan.blocks(), 1u + 10u);
  std::set<uint32_t> blocks;
  for (Key key = 0; key < 1000; ++key) {
    EXPECT_EQ(plan.block_of(3, key), 0u);
    blocks.insert(plan.block_of(9, key));
  }
  EXPECT_THAT(blocks, SizeIs(10));
  EXPECT_THAT(blocks, Each(testing::AllOf(testing::Ge(1u), testing::Le(10u))));
}

TEST(BlockPlan, SmallKeysAreSpreadOverTheBlocks) {
  const BlockPlan plan({{0, {.features = 2000, .examples = 1000}}}, 4);
  std::vector<int> counts(plan.blocks());
  for (Key key = 1; key <= 8000; ++key) ++counts[plan.block_of(0, key)];
  EXPECT_THAT(counts, Each(testing::AllOf(testing::Ge(800), testing::Le(1200))));
}

TEST(BlockPlan, AnOrderHasEachBlockOnceAndChanges) {
  const BlockPlan plan(kTwoGroups, 4);
  std::vector<uint32_t> first = plan.order(0, true);
  const std::vector<uint32_t> second = plan.order(1, true);
  EXPECT_NE(first, second);
  EXPECT_EQ(first, plan.order(0, true));
  std::ranges::sort(first);
  EXPECT_EQ(first, plan.order(7, false));
}

TEST(BlockPlan, PriorGroupsComeSeveralTimes) {
  const BlockPlan plan(kTwoGroups, 4);
  const std::vector<uint16_t> prior = {9, 77};
  const std::vector<uint32_t> order = plan.prior_order(prior, 3, true);
  EXPECT_THAT(order, SizeIs(30));
  for (uint32_t block = 1; block <= 10; ++block) EXPECT_EQ(std::ranges::count(order, block), 3);
}

TEST(BlockPlan, NoFeaturesAreNoBlocks) {
  EXPECT_EQ(BlockPlan({}, 4).blocks(), 0u);
  EXPECT_THAT(BlockPlan({}, 4).order(0, true), SizeIs(0));
}

}  // namespace
}  // namespace pscloud

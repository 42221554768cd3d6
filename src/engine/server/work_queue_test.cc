#include "engine/server/work_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pscloud {
namespace {

using testing::ElementsAre;

std::vector<uint64_t> take_all(WorkQueue& queue, uint64_t session) {
  std::vector<uint64_t> taken;
  while (const auto number = queue.take(session)) taken.push_back(*number);
  EXPECT_TRUE(queue.kept().empty());
  return taken;
}

TEST(WorkQueue, AWorkerAloneTakesAllInOrderWhateverItHadBefore) {
  WorkQueue all_new({0, 0, 0, 0});
  EXPECT_THAT(take_all(all_new, 1), ElementsAre(0, 1, 2, 3));
  WorkQueue all_old({1, 1, 1, 1});
  EXPECT_THAT(take_all(all_old, 1), ElementsAre(0, 1, 2, 3));
  WorkQueue some({0, 1, 0, 1});  // as after it was resumed in the middle of a pass
  EXPECT_THAT(take_all(some, 1), ElementsAre(0, 1, 2, 3));
}

TEST(WorkQueue, EachGetsWhatItHadBefore) {
  WorkQueue queue({2, 1, 2, 1});
  EXPECT_EQ(queue.take(1), 1u);
  EXPECT_EQ(queue.take(2), 0u);
  EXPECT_EQ(queue.take(1), 3u);
  EXPECT_EQ(queue.take(2), 2u);
  EXPECT_EQ(queue.take(1), std::nullopt);
}

TEST(WorkQueue, WhatIsTakenFromOthersIsTheEndOfWhoHasMost) {
  const auto anybody = [](uint64_t) { return true; };
  WorkQueue queue({1, 2, 2, 2, 1});
  EXPECT_EQ(queue.take(3), std::nullopt);
  EXPECT_EQ(queue.take_kept(anybody), 3u);
  EXPECT_EQ(queue.take(2), 1u);
  EXPECT_EQ(queue.take_kept(anybody), 4u);
  EXPECT_EQ(queue.take(2), 2u);
  EXPECT_EQ(queue.take_kept(anybody), 0u);
  EXPECT_EQ(queue.take_kept(anybody), std::nullopt);
}

TEST(WorkQueue, NothingIsTakenFromWhoMayNotLoseIt) {
  WorkQueue queue({1, 2, 2});
  EXPECT_EQ(queue.take_kept([](uint64_t session) { return session == 1; }), 0u);
  EXPECT_EQ(queue.take_kept([](uint64_t session) { return session == 1; }), std::nullopt);
}

TEST(WorkQueue, WhatTheDeadHadIsForAnybody) {
  WorkQueue queue({1, 1, 2});
  EXPECT_EQ(queue.take(1), 0u);
  queue.put_back(0);
  queue.forget(1);
  queue.forget(7);
  EXPECT_EQ(queue.take(3), 0u);
  EXPECT_EQ(queue.take(3), 1u);
  EXPECT_EQ(queue.take(2), 2u);
}

}  // namespace
}  // namespace pscloud

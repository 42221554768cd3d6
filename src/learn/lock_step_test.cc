#include "learn/lock_step.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "base/log.h"
#include "engine/testing_cluster.h"

namespace pscloud {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class LockStepTest : public testing::Test {
 protected:
  void SetUp() override { set_log_level(LogLevel::kSilent); }
  void TearDown() override { set_log_level(LogLevel::kInfo); }
};

TEST_F(LockStepTest, ARoundEndsForAllAtTheSameClockThoughSomeHaveMoreToDo) {
  const TestingCluster cluster({.servers = 2, .workers = 3});
  cluster.run_workers([](Worker& worker) {
    auto steps = LockStep::make(worker);
    ASSERT_TRUE(steps) << steps.error().message;
    const auto table = worker.create_table({.name = "t", .consistency = Consistency::bsp()});
    ASSERT_TRUE(table);
    for (uint32_t round = 1; round <= 3; ++round) {
      // 0, 1 and 2 minibatches in the first round, 0, 2 and 4 in the second.
      for (uint32_t i = 0; i < round * static_cast<uint32_t>(worker.rank()); ++i) {
        (void)worker.push(*table, std::vector<Key>{1}, std::vector<float>{1});
        steps->end_minibatch();
      }
      const auto told = steps->end_round({.checkpoint = round == 2 && worker.rank() == 1});
      ASSERT_TRUE(told) << told.error().message;
      EXPECT_THAT(told->ranks, ElementsAre(0, 1, 2));
      EXPECT_EQ(told->checkpoint, round == 2);
      EXPECT_EQ(worker.current_clock(), std::vector<uint32_t>({0, 3, 8, 15})[round]);
      // What was pushed has taken effect.
      std::vector<float> sum(1);
      ASSERT_TRUE(worker.pull(*table, std::vector<Key>{1}, sum).wait());
      EXPECT_EQ(sum[0], std::vector<float>({0, 3, 9, 18})[round]);
    }
  });
}

TEST_F(LockStepTest, WhoDiesOrLeavesIsNotWaitedForAndNotInTheNextRound) {
  const TestingCluster cluster({.workers = 3});
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < 3; ++rank) {
    threads.emplace_back([&, rank] {
      auto worker = cluster.worker(rank);
      auto steps = LockStep::make(*worker);
      ASSERT_TRUE(steps) << steps.error().message;
      EXPECT_THAT(steps->end_round({})->ranks, ElementsAre(0, 1, 2));
      if (rank == 1) {
        steps->end_minibatch();
        worker.reset();  // in the middle of the round
        return;
      }
      EXPECT_THAT(steps->end_round({.stays = rank == 2})->ranks, ElementsAre(2));
      if (rank == 2) {
        EXPECT_THAT(steps->end_round({})->ranks, ElementsAre(2));
      }
      EXPECT_TRUE(worker->leave());
    });
  }
}

TEST_F(LockStepTest, WhoComesLateIsToldSo) {
  const TestingCluster cluster({.workers = 2});
  std::unique_ptr<Worker> other;
  std::jthread joining([&] { other = cluster.worker(1); });
  const auto worker = cluster.worker(0);
  joining.join();
  EXPECT_TRUE(other->give_up("its machine goes"));
  ASSERT_TRUE(worker->clock().wait());
  const auto late = cluster.worker(1);
  EXPECT_THAT(LockStep::make(*late).error().message, HasSubstr("has begun without this worker"));
  EXPECT_TRUE(late->leave());
  EXPECT_TRUE(worker->leave());
}

}  // namespace
}  // namespace pscloud

#include "engine/server/work_pool.h"

#include <gtest/gtest.h>

namespace pscloud {
namespace {

using State = TakenMessage::State;

std::string worker_name(uint64_t session) { return fmt::format("worker {}", session); }

class WorkPoolTest : public testing::Test {
 protected:
  TakenMessage take(uint64_t session) { return pool_.take(session, now_, worker_name); }
  Result<bool> finish(uint64_t session, uint64_t number) { return pool_.finish(session, number, now_); }

  Time now_{1};
  WorkPool pool_{{"a", "b", "c"}};
};

TEST_F(WorkPoolTest, EachItemIsGivenOnceAndTheEndIsToldWhenAllAreDone) {
  for (const std::string text : {"a", "b", "c"}) {
    const auto taken = take(1);
    EXPECT_EQ(taken.state, State::kGiven);
    EXPECT_EQ(taken.item.text, text);
    EXPECT_FALSE(taken.item.repeated);
  }
  const auto waiting = take(2);
  EXPECT_EQ(waiting.state, State::kWait);
  EXPECT_EQ(waiting.waiting_for, "worker 1 with item 0, worker 1 with item 1, worker 1 with item 2");
  for (uint64_t number = 0; number < 3; ++number) EXPECT_TRUE(finish(1, number).value());
  EXPECT_EQ(take(1).state, State::kEnd);
  EXPECT_EQ(take(2).state, State::kEnd);
}

TEST_F(WorkPoolTest, NoItemsAreDoneAtOnce) {
  WorkPool none({});
  EXPECT_EQ(none.take(1, now_, worker_name).state, State::kEnd);
}

TEST_F(WorkPoolTest, WhatAWorkerHadThatIsGoneIsGivenAgain) {
  take(1);
  take(2);
  EXPECT_TRUE(finish(1, 0).value());
  take(1);
  pool_.forget(1);
  const auto again = take(2);
  EXPECT_EQ(again.state, State::kGiven);
  EXPECT_EQ(again.item.number, 2u);
  EXPECT_EQ(again.item.text, "c");
  EXPECT_TRUE(again.item.repeated);
}

TEST_F(WorkPoolTest, ASlowWorkersItemIsGivenToOneMoreAndCountsOnce) {
  for (int i = 0; i < 3; ++i) take(1);
  now_ = now_ + std::chrono::seconds(2);
  EXPECT_TRUE(finish(1, 0).value());
  EXPECT_TRUE(finish(1, 1).value());
  now_ = now_ + std::chrono::seconds(5);
  EXPECT_EQ(take(2).state, State::kWait);  // four times two seconds have not passed
  now_ = now_ + std::chrono::seconds(2);
  EXPECT_EQ(take(1).state, State::kWait);  // it is the slow one itself
  const auto again = take(2);
  EXPECT_EQ(again.item.number, 2u);
  EXPECT_TRUE(again.item.repeated);
  EXPECT_EQ(take(3).state, State::kWait);  // two are enough
  EXPECT_TRUE(finish(2, 2).value());
  EXPECT_FALSE(finish(1, 2).value());
  EXPECT_EQ(take(3).state, State::kEnd);
}

TEST_F(WorkPoolTest, OneOfTwoThatIsGoneLeavesTheItemToTheOther) {
  for (int i = 0; i < 3; ++i) take(1);
  EXPECT_TRUE(finish(1, 0).value());
  now_ = now_ + std::chrono::seconds(60);
  EXPECT_EQ(take(2).item.number, 1u);
  pool_.forget(2);
  EXPECT_TRUE(finish(1, 1).value());
  EXPECT_TRUE(finish(1, 2).value());
  EXPECT_EQ(take(1).state, State::kEnd);
}

TEST_F(WorkPoolTest, OnlyWhoHasAnItemCanFinishIt) {
  take(1);
  EXPECT_EQ(finish(2, 0).error().code, Code::kInvalid);
  EXPECT_EQ(finish(1, 1).error().code, Code::kInvalid);
  EXPECT_EQ(finish(1, 3).error().message, "item 3 of work that has 3");
}

TEST_F(WorkPoolTest, KnowsWhatItWasMadeOfToTheEnd) {
  take(1);
  EXPECT_TRUE(finish(1, 0).value());
  EXPECT_TRUE(pool_.was_made_of({"a", "b", "c"}));
  EXPECT_FALSE(pool_.was_made_of({"ab", "c"}));
  EXPECT_FALSE(pool_.was_made_of({"a", "b"}));
}

TEST_F(WorkPoolTest, APauseComesWhenAllThatWasGivenIsDone) {
  ASSERT_EQ(take(1).item.number, 0u);
  EXPECT_TRUE(pool_.pause(5));
  EXPECT_FALSE(pool_.pause(6));
  const auto waiting = take(2);
  EXPECT_EQ(waiting.state, State::kWait);
  EXPECT_EQ(waiting.waiting_for, "worker 1 with item 0");
  EXPECT_TRUE(finish(1, 0).value());
  for (const uint64_t worker : {1, 2}) {
    const auto taken = take(worker);
    EXPECT_EQ(taken.state, State::kPause);
    EXPECT_EQ(taken.item.number, 5u);
  }
  EXPECT_FALSE(pool_.resume(4));
  EXPECT_TRUE(pool_.resume(5));
  EXPECT_FALSE(pool_.resume(5));
  EXPECT_FALSE(pool_.pause(5));  // that was it
  EXPECT_EQ(take(2).item.number, 1u);
}

TEST_F(WorkPoolTest, APauseDoesNotWaitForTheDead) {
  ASSERT_EQ(take(1).item.number, 0u);
  ASSERT_EQ(take(2).item.number, 1u);
  EXPECT_TRUE(pool_.pause(1));
  EXPECT_TRUE(finish(2, 1).value());
  EXPECT_EQ(take(2).state, State::kWait);
  pool_.forget(1);
  EXPECT_EQ(take(2).state, State::kPause);
  EXPECT_TRUE(pool_.resume(1));
  const auto again = take(2);
  EXPECT_EQ(again.item.number, 0u);
  EXPECT_TRUE(again.item.repeated);
}

TEST_F(WorkPoolTest, TheEndCanBeAPauseFirst) {
  WorkPool one({"a"});
  one.take(1, now_, worker_name);
  EXPECT_TRUE(one.pause(1));
  EXPECT_TRUE(one.finish(1, 0, now_).value());
  EXPECT_EQ(one.take(1, now_, worker_name).state, State::kPause);
  EXPECT_TRUE(one.resume(1));
  EXPECT_EQ(one.take(1, now_, worker_name).state, State::kEnd);
}

TEST_F(WorkPoolTest, ItemsOfWorkThatAwaitsAreNeverGivenTwiceToTheLiving) {
  WorkPool pool({"a", "b"}, {.slow = SlowWork::kAwait});
  pool.take(1, now_, worker_name);
  pool.take(2, now_, worker_name);
  EXPECT_TRUE(pool.finish(2, 1, now_).value());
  EXPECT_EQ(pool.take(2, now_ + std::chrono::hours(1), worker_name).state, State::kWait);
  pool.forget(1);
  EXPECT_EQ(pool.take(2, now_, worker_name).state, State::kGiven);
}

// Two workers, to which four items were dealt.
class DealtWork : public WorkPoolTest {
 protected:
  TakenMessage take(uint64_t session) { return dealt_.take(session, now_, worker_name); }
  Result<bool> finish(uint64_t session, uint64_t number) { return dealt_.finish(session, number, now_); }

  WorkPool dealt_{{"a", "b", "c", "d"}, {.deal = WorkDeal::kByRank}, now_, {1, 2, 1, 2}};
};

TEST_F(DealtWork, GoesToNobodyElse) {
  EXPECT_EQ(take(1).item.number, 0u);
  EXPECT_TRUE(finish(1, 0).value());
  EXPECT_EQ(take(1).item.number, 2u);
  EXPECT_TRUE(finish(1, 2).value());
  now_ = now_ + std::chrono::seconds(29);
  const auto waiting = take(1);
  EXPECT_EQ(waiting.state, State::kWait);
  EXPECT_EQ(waiting.waiting_for, "worker 2 with item 1");
  EXPECT_EQ(take(2).item.number, 1u);
  EXPECT_EQ(take(1).waiting_for, "worker 2 with item 1, worker 2 with item 3");
}

TEST_F(DealtWork, GoesToOthersWhenItsWorkerIsGone) {
  EXPECT_EQ(take(2).item.number, 1u);
  dealt_.forget(2);
  for (const uint64_t number : {0, 1, 2, 3}) {
    const auto taken = take(1);
    EXPECT_EQ(taken.item.number, number);
    EXPECT_EQ(taken.item.repeated, number == 1);
  }
}

TEST_F(DealtWork, GoesToOthersWhenItsWorkerIsVerySlow) {
  EXPECT_EQ(take(1).item.number, 0u);
  EXPECT_TRUE(finish(1, 0).value());
  EXPECT_EQ(take(1).item.number, 2u);
  EXPECT_TRUE(finish(1, 2).value());
  EXPECT_EQ(take(2).item.number, 1u);
  now_ = now_ + std::chrono::seconds(31);
  EXPECT_EQ(take(1).item.number, 3u);
  EXPECT_TRUE(finish(1, 3).value());
  EXPECT_EQ(take(1).item.number, 1u);  // and the one that it is at, last
}

TEST_F(DealtWork, GoesToOthersWhenItsWorkerNeverBegins) {
  EXPECT_EQ(take(1).item.number, 0u);
  EXPECT_TRUE(finish(1, 0).value());
  EXPECT_EQ(take(1).item.number, 2u);
  EXPECT_TRUE(finish(1, 2).value());
  now_ = now_ + std::chrono::seconds(31);
  EXPECT_EQ(take(1).item.number, 3u);
}

}  // namespace
}  // namespace pscloud

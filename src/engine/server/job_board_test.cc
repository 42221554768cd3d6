#include "engine/server/job_board.h"

#include <gtest/gtest.h>

#include <limits>

namespace pscloud {
namespace {

class JobBoardTest : public testing::Test {
 protected:
  template <class Answer, class Message>
  Result<Answer> ask(uint64_t session, FrameType type, const Message& message) {
    Frame frame;
    frame.header.type = type;
    frame.header.session = session;
    frame.payload = encode(message);
    return decode<Answer>(TRY(board_.serve(frame, Time{1}))->span());
  }
  Result<bool> offer(const std::string& pool, std::vector<std::string> items) {
    return TRY(ask<YesNoMessage>(1, FrameType::kOfferWork, OfferWorkMessage{pool, std::move(items)})).yes;
  }
  Result<TakenMessage> take(uint64_t session, const std::string& pool) {
    return ask<TakenMessage>(session, FrameType::kTakeWork, TextMessage{pool});
  }
  Result<bool> finish(uint64_t session, uint64_t number, std::vector<Addend> addends, const std::string& pool = "pool",
                      const std::string& forgets = "") {
    const FinishWorkMessage message{pool, number, std::move(addends), forgets};
    return TRY(ask<YesNoMessage>(session, FrameType::kFinishWork, message)).yes;
  }
  Result<std::vector<double>> tally(std::vector<Addend> addends, uint32_t first = 0, uint32_t count = 4) {
    const TallyMessage message{"pool", std::move(addends), first, count};
    return TRY(ask<TallyReplyMessage>(1, FrameType::kTally, message)).sums;
  }

  JobBoard board_{[](uint64_t session) { return fmt::format("worker {}", session); },
                  [] {
                    return std::vector<uint64_t>{7, 3};
                  }};
};

TEST_F(JobBoardTest, TheFirstOfferMakesThePool) {
  EXPECT_EQ(take(1, "pool").error().message, "no work 'pool' has been offered");
  EXPECT_TRUE(offer("pool", {"a"}).value());
  EXPECT_TRUE(offer("pool", {"a"}).value());
  EXPECT_FALSE(offer("pool", {"b"}).value());
  EXPECT_EQ(take(1, "pool")->item.text, "a");
}

TEST_F(JobBoardTest, DealsByRankWhoeverAsksFirst) {
  const OfferWorkMessage dealt{"pool", {"a", "b", "c"}, SlowWork::kRepeat, WorkDeal::kByRank};
  ASSERT_TRUE(ask<YesNoMessage>(3, FrameType::kOfferWork, dealt));
  EXPECT_EQ(take(3, "pool")->item.text, "b");
  EXPECT_EQ(take(3, "pool")->state, TakenMessage::State::kWait);
  EXPECT_EQ(take(7, "pool")->item.text, "a");
  EXPECT_EQ(take(7, "pool")->item.text, "c");
}

TEST_F(JobBoardTest, WorkThatDoesNotCountAddsNothing) {
  ASSERT_TRUE(offer("pool", {"a", "b"}));
  ASSERT_EQ(take(1, "pool")->item.number, 0u);
  EXPECT_FALSE(finish(2, 0, {{0, 1}}));  // it has not got it
  EXPECT_TRUE(finish(1, 0, {{0, 1}, {2, 0.5}, {0, 1}}).value());
  EXPECT_FALSE(finish(1, 0, {{0, 1}}).value());
  EXPECT_EQ(tally({}).value(), (std::vector<double>{2, 0, 0.5, 0}));
}

TEST_F(JobBoardTest, WhatCannotBeAddedLeavesTheItemWithItsWorker) {
  ASSERT_TRUE(offer("pool", {"a"}));
  ASSERT_EQ(take(1, "pool")->item.number, 0u);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(finish(1, 0, {{0, 1}, {1, nan}}).error().message, "nan cannot be added to tally 'pool'");
  EXPECT_EQ(finish(1, 0, {{TallyMessage::kPlacesMax, 1}}).error().code, Code::kInvalid);
  EXPECT_EQ(tally({}).value(), std::vector<double>(4));
  EXPECT_TRUE(finish(1, 0, {{0, 1}}).value());
}

TEST_F(JobBoardTest, AWorkerThatIsGoneLosesItsWork) {
  ASSERT_TRUE(offer("pool", {"a"}));
  ASSERT_EQ(take(1, "pool")->item.number, 0u);
  EXPECT_EQ(take(2, "pool")->waiting_for, "worker 1 with item 0");
  board_.forget(1);
  EXPECT_TRUE(take(2, "pool")->item.repeated);
}

TEST_F(JobBoardTest, TalliesAreReadInParts) {
  EXPECT_EQ(tally({{5, 2}}, 4, 3).value(), (std::vector<double>{0, 2, 0}));
  EXPECT_EQ(tally({{5, 1.25}}, 5, 1).value(), (std::vector<double>{3.25}));
  EXPECT_EQ(tally({}, TallyMessage::kPlacesMax + 1, 1).error().code, Code::kInvalid);
  EXPECT_EQ(tally({}, 0, UINT32_MAX).error().code, Code::kInvalid);
}

TEST_F(JobBoardTest, ATallyIsForgottenWithTheEndOfAnItemAndNotBefore) {
  ASSERT_TRUE(offer("pool", {"a"}));
  ASSERT_TRUE(offer("end", {"e"}));
  ASSERT_EQ(take(1, "pool")->item.number, 0u);
  ASSERT_TRUE(finish(1, 0, {{1 << 20, 7}}).value());
  ASSERT_EQ(take(1, "end")->item.number, 0u);
  EXPECT_FALSE(finish(2, 0, {}, "end", "pool"));  // it has not got the item
  EXPECT_EQ(tally({}, 1 << 20, 1).value(), (std::vector<double>{7}));
  EXPECT_TRUE(finish(1, 0, {{0, 7}}, "end", "pool").value());
  EXPECT_EQ(tally({}, 1 << 20, 1).value(), (std::vector<double>{0}));
  ASSERT_TRUE(tally({{0, 1}}));
  EXPECT_FALSE(finish(1, 0, {}, "end", "pool").value());  // once
  EXPECT_EQ(tally({}, 0, 1).value(), (std::vector<double>{1}));
}

TEST_F(JobBoardTest, LargeTalliesThatAreForgottenTakeNoRoom) {
  for (int pass = 0; pass < 200; ++pass) {  // 16 MB each
    const std::string pool = fmt::format("pool {}", pass);
    ASSERT_TRUE(offer(pool, {"a"}));
    ASSERT_TRUE(take(1, pool));
    ASSERT_TRUE(finish(1, 0, {{2 << 20, 1}}, pool)) << pass;
    ASSERT_TRUE(offer(pool + " end", {"e"}));
    ASSERT_TRUE(take(1, pool + " end"));
    ASSERT_TRUE(finish(1, 0, {}, pool + " end", pool)) << pass;
  }
}

TEST_F(JobBoardTest, ItemsGoToWhomTheyWentBefore) {
  const std::vector<std::string> parts{"a", "b", "c", "d"};
  ASSERT_TRUE(offer("pass 1", parts));
  for (const uint64_t session : {2, 1, 1, 2}) {
    ASSERT_TRUE(finish(session, take(session, "pass 1")->item.number, {}, "pass 1").value());
  }
  ASSERT_TRUE(offer("pass 2", parts));
  EXPECT_EQ(take(1, "pass 2")->item.text, "b");
  EXPECT_EQ(take(2, "pass 2")->item.text, "a");
  EXPECT_EQ(take(1, "pass 2")->item.text, "c");
  EXPECT_EQ(take(1, "pass 2")->item.text, "d");  // nothing else is left
  board_.forget(1);
  ASSERT_TRUE(offer("pass 3", parts));
  EXPECT_EQ(take(2, "pass 3")->item.text, "a");
  EXPECT_EQ(take(2, "pass 3")->item.text, "b");
}

TEST_F(JobBoardTest, HasABoundedSize) {
  Result<bool> last = true;
  const std::vector<std::string> items(4000, std::string(1000, 'x'));
  int pools = 0;
  while (last && pools < 1000) last = offer(fmt::format("pool {}", pools++), items);
  ASSERT_FALSE(last);
  EXPECT_EQ(last.error().code, Code::kInvalid);
  EXPECT_NE(last.error().message.find("no room for"), std::string::npos);
  EXPECT_GT(pools, 10);
}

}  // namespace
}  // namespace pscloud

#include "engine/member.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "base/log.h"
#include "net/recording_transport.h"

namespace pscloud {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr uint64_t kSession = 5;

// The test plays the scheduler.
class MemberTest : public testing::Test, public Member::Listener {
 protected:
  MemberTest() {
    set_log_level(LogLevel::kSilent);
    Member::Options options;
    options.job = "test";
    options.scheduler = "there:1";
    options.self.session = kSession;
    options.self.rank = Member::kNoRank;
    member_.emplace(options, transport_, clock_, random_, *this);
    member_->start();
  }
  ~MemberTest() override { set_log_level(LogLevel::kInfo); }

  void on_view(const View& view) override { views_.push_back(view.version); }
  void on_barrier(uint64_t number) override { barriers_.push_back(number); }
  void on_expelled(const Error& why) override { expelled_.push_back(why); }

  void give(FrameType type, SharedBuffer payload = nullptr, uint64_t seq = 0) {
    Frame frame;
    frame.header.type = type;
    frame.header.seq = seq;
    frame.payload = std::move(payload);
    member_->on_frame(transport_.last_lane, frame);
  }
  void view(uint64_t version, NodeState state = NodeState::kLive, uint64_t barriers = 0,
            Phase phase = Phase::kRunning) {
    View view;
    view.version = version;
    view.phase = phase;
    NodeInfo self;
    self.session = kSession;
    self.state = state;
    self.rank = 3;
    view.nodes = {self};
    give(FrameType::kView, encode(view), barriers);
  }
  void open() { member_->on_open(transport_.last_lane); }
  void join() {
    open();
    view(1);
    transport_.take();
  }
  void pass_to_next_wake() {
    clock_.advance_to(member_->next_wake());
    member_->on_wake();
  }
  std::vector<FrameType> types() {
    std::vector<FrameType> list;
    for (const Frame& frame : transport_.take()) list.push_back(frame.header.type);
    return list;
  }

  ManualClock clock_;
  Random random_{1};
  RecordingTransport transport_;
  std::optional<Member> member_;
  std::vector<uint64_t> views_;
  std::vector<uint64_t> barriers_;
  std::vector<Error> expelled_;
};

TEST_F(MemberTest, AsksForAPlaceUntilItHasOne) {
  open();
  EXPECT_THAT(types(), ElementsAre(FrameType::kJoin));
  pass_to_next_wake();
  EXPECT_THAT(types(), ElementsAre(FrameType::kJoin));
  EXPECT_FALSE(member_->joined());
  view(1);
  EXPECT_TRUE(member_->joined());
  EXPECT_EQ(member_->self()->rank, 3u);
  pass_to_next_wake();
  EXPECT_THAT(types(), ElementsAre(FrameType::kHeartbeat));
}

TEST_F(MemberTest, TakesNoOlderView) {
  join();
  view(3);
  view(2);
  view(3);
  EXPECT_THAT(views_, ElementsAre(1, 3));
}

TEST_F(MemberTest, SaysWhoIsMissing) {
  EXPECT_THAT(member_->waiting_for(), HasSubstr("the scheduler at there:1"));
  open();
  give(FrameType::kJoinWait, encode(TextMessage{"1 of 2 workers"}));
  EXPECT_EQ(member_->waiting_for(), "1 of 2 workers");
  view(1);
  EXPECT_EQ(member_->waiting_for(), "");
}

TEST_F(MemberTest, GivesUpWhenTimeIsOverAndNamesWhoWasMissing) {
  open();
  give(FrameType::kJoinWait, encode(TextMessage{"1 of 2 workers"}));
  clock_.advance(Timing{}.join + Timing{}.reconnect);
  give(FrameType::kJoinWait, encode(TextMessage{"1 of 2 workers"}));
  member_->on_wake();
  ASSERT_EQ(expelled_.size(), 1u);
  EXPECT_EQ(expelled_[0].code, Code::kTimeout);
  EXPECT_THAT(expelled_[0].message, HasSubstr("1 of 2 workers"));
  EXPECT_EQ(member_->next_wake(), Time::never());
}

TEST_F(MemberTest, WhoNeverHearsOfTheSchedulerGivesUpSooner) {
  open();
  clock_.advance(Timing{}.join);
  member_->on_wake();
  ASSERT_EQ(expelled_.size(), 1u);
  EXPECT_THAT(expelled_[0].message, HasSubstr("no place in the job after 60 s: the scheduler at there:1"));
}

TEST_F(MemberTest, WhoCameBeforeTheSchedulerWaitsForTheOthersAsLongAsThatDoes) {
  clock_.advance(Timing{}.join - std::chrono::seconds(1));
  open();
  give(FrameType::kJoinWait, encode(TextMessage{"1 of 2 workers"}));
  clock_.advance(Timing{}.join);
  give(FrameType::kJoinWait, encode(TextMessage{"1 of 2 workers"}));
  member_->on_wake();
  EXPECT_TRUE(expelled_.empty());
}

TEST_F(MemberTest, ARefusalEndsIt) {
  open();
  give(FrameType::kRefused, encode(TextMessage{"this is the job 'x'"}));
  ASSERT_EQ(expelled_.size(), 1u);
  EXPECT_EQ(expelled_[0].code, Code::kInvalid);
  EXPECT_THAT(expelled_[0].message, HasSubstr("this is the job 'x'"));
  give(FrameType::kRefused, encode(TextMessage{"again"}));
  EXPECT_EQ(expelled_.size(), 1u);
}

TEST_F(MemberTest, ComesBackAfterACutAndTellsWhatItKnew) {
  join();
  view(4, NodeState::kLive, 0);
  member_->on_close(transport_.last_lane, unavailable("cut"));
  pass_to_next_wake();
  ASSERT_EQ(transport_.connected.size(), 2u);
  open();
  const auto sent = transport_.take();
  ASSERT_EQ(sent.size(), 1u);
  const auto again = decode<JoinMessage>(sent[0].bytes());
  ASSERT_TRUE(again);
  EXPECT_EQ(again->view.version, 4u);
  EXPECT_EQ(again->self.rank, 3u);
}

TEST_F(MemberTest, TriesAgainLaterAndLaterButNeverLongerThanASecondAndAHalf) {
  for (int i = 0; i < 20; ++i) {
    member_->on_close(transport_.last_lane, unavailable("refused"));
    EXPECT_LE(member_->next_wake() - clock_.now(), std::chrono::milliseconds(1500));
    pass_to_next_wake();
    if (!expelled_.empty()) break;
  }
  EXPECT_GT(transport_.connected.size(), 5u);
}

TEST_F(MemberTest, ASilentSchedulerIsTriedOnANewLane) {
  join();
  const LaneId silent = transport_.last_lane;
  for (int i = 0; i < 40 && transport_.last_lane == silent; ++i) pass_to_next_wake();
  EXPECT_TRUE(transport_.closed.contains(silent));
  EXPECT_NE(transport_.last_lane, silent);
}

// The scheduler may have heard that the lane closed, and waits for a new one only for so long.
TEST_F(MemberTest, ASilentLaneIsReplacedBeforeTheSchedulerGivesUp) {
  join();
  const Time heard = clock_.now();
  const LaneId silent = transport_.last_lane;
  while (transport_.last_lane == silent && clock_.now() - heard < Timing{}.death) pass_to_next_wake();
  EXPECT_NE(transport_.last_lane, silent);
  EXPECT_LT(clock_.now() - heard, Timing{}.reconnect);
}

TEST_F(MemberTest, AConnectionThatNobodyAnswersIsGivenUpBeforeTheSchedulerGivesUp) {
  join();
  const Time lost = clock_.now();
  member_->on_close(transport_.last_lane, unavailable("cut"));
  while (transport_.connected.size() < 3 && clock_.now() - lost < Timing{}.death) pass_to_next_wake();
  EXPECT_EQ(transport_.connected.size(), 3u);
  EXPECT_LT(clock_.now() - lost, Timing{}.reconnect);
}

TEST_F(MemberTest, WhoStoodStillItselfReadsFirstWhatCameMeanwhile) {
  join();
  const LaneId lane = transport_.last_lane;
  pass_to_next_wake();
  clock_.advance(Timing{}.reconnect);
  member_->on_wake();
  EXPECT_FALSE(transport_.closed.contains(lane));
}

TEST_F(MemberTest, GoesOnForAWhileWithoutItsScheduler) {
  join();
  const Time lost = clock_.now();
  member_->on_close(transport_.last_lane, unavailable("gone"));
  while (expelled_.empty() && clock_.now() - lost < Timing{}.orphan * 2) {
    pass_to_next_wake();
    if (transport_.last_lane > 1) member_->on_close(transport_.last_lane, unavailable("refused"));
  }
  ASSERT_EQ(expelled_.size(), 1u);
  EXPECT_GE(clock_.now() - lost, Timing{}.orphan);
  EXPECT_THAT(expelled_[0].message, HasSubstr("has been gone"));
}

TEST_F(MemberTest, ArrivesAtABarrierUntilItOpens) {
  join();
  member_->arrive_at_barrier();
  EXPECT_THAT(types(), ElementsAre(FrameType::kBarrier));
  pass_to_next_wake();
  EXPECT_THAT(types(), ElementsAre(FrameType::kHeartbeat, FrameType::kBarrier));
  give(FrameType::kBarrierWait, encode(TextMessage{"worker 1"}));
  EXPECT_EQ(member_->waiting_for(), "barrier 1: worker 1");
  give(FrameType::kBarrierRelease, nullptr, 1);
  EXPECT_THAT(barriers_, ElementsAre(1));
}

TEST_F(MemberTest, ARepeatedReleaseOpensNoOtherBarrier) {
  join();
  member_->arrive_at_barrier();
  give(FrameType::kBarrierRelease, nullptr, 1);
  member_->arrive_at_barrier();
  give(FrameType::kBarrierRelease, nullptr, 1);
  EXPECT_THAT(barriers_, ElementsAre(1));
  give(FrameType::kBarrierRelease, nullptr, 2);
  EXPECT_THAT(barriers_, ElementsAre(1, 2));
}

TEST_F(MemberTest, WhoComesLateCountsBarriersFromWhereTheOthersAre) {
  open();
  view(9, NodeState::kLive, 6);
  transport_.take();
  member_->arrive_at_barrier();
  EXPECT_EQ(transport_.take().at(0).header.seq, 7u);
}

TEST_F(MemberTest, OneDeclaredDeadIsOut) {
  join();
  view(2, NodeState::kDead);
  ASSERT_EQ(expelled_.size(), 1u);
  EXPECT_THAT(expelled_[0].message, HasSubstr("Start it again"));
}

TEST_F(MemberTest, SaysGoodbyeUntilItIsHeard) {
  join();
  member_->leave(false, "");
  EXPECT_THAT(types(), testing::Contains(FrameType::kLeave));
  EXPECT_FALSE(member_->left());
  pass_to_next_wake();
  EXPECT_THAT(types(), testing::Contains(FrameType::kLeave));
  view(2, NodeState::kDone);
  EXPECT_TRUE(member_->left());
  EXPECT_THAT(views_, ElementsAre(1));  // it is not told any more
}

TEST_F(MemberTest, AGoodbyeThatNobodyHearsEndsAllTheSame) {
  join();
  member_->leave(false, "");
  clock_.advance(Timing{}.stop);
  member_->on_wake();
  EXPECT_TRUE(member_->left());
}

TEST_F(MemberTest, OneThatComesAfterTheEndIsToldSo) {
  open();
  View over;
  over.version = 8;
  over.phase = Phase::kStopping;
  give(FrameType::kView, encode(over));
  ASSERT_EQ(expelled_.size(), 1u);
  EXPECT_THAT(expelled_[0].message, HasSubstr("the job is over"));
}

TEST_F(MemberTest, FramesOfAnotherLaneAndUnreadableOnesAreIgnored) {
  join();
  Frame frame;
  frame.header.type = FrameType::kRefused;
  member_->on_frame(transport_.last_lane + 1, frame);
  give(FrameType::kView, encode(TextMessage{"no view"}));
  EXPECT_TRUE(expelled_.empty());
  EXPECT_THAT(views_, ElementsAre(1));
}

}  // namespace
}  // namespace pscloud

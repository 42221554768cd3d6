// Long because: all claims about the scheduler have one fixture, which plays everybody else.

#include "engine/scheduler/scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "base/log.h"
#include "engine/member.h"
#include "net/recording_transport.h"

namespace pscloud {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

NodeInfo server(uint64_t session, uint64_t process, uint32_t owner = 0, uint32_t owners = 1,
                uint32_t wish = Member::kNoRank) {
  NodeInfo node;
  node.session = session;
  node.process = process;
  node.role = Role::kServer;
  node.rank = wish;
  node.owner = owner;
  node.owners = owners;
  node.address = "there:" + std::to_string(session);
  return node;
}

NodeInfo worker(uint64_t session, uint32_t wish = Member::kNoRank) {
  NodeInfo node;
  node.session = session;
  node.rank = wish;
  return node;
}

// The test plays the members; the lane of each has the number of its session.
class SchedulerTest : public testing::Test {
 protected:
  SchedulerTest() { set_log_level(LogLevel::kSilent); }
  ~SchedulerTest() override { set_log_level(LogLevel::kInfo); }

  void start(int servers, int workers, int workers_min = 0) {
    options_.job = "test";
    options_.servers = servers;
    options_.workers = workers;
    options_.workers_min = workers_min;
    restart();
  }
  // A job of one server, session 1, and workers with sessions 2, 3, ...
  void run(int workers) {
    start(1, workers);
    join(server(1, 10));
    for (int i = 0; i < workers; ++i) join(worker(2 + static_cast<uint64_t>(i)));
  }
  // A new scheduler that knows nothing.
  void restart() {
    scheduler_.emplace(options_, transport_, clock_);
    scheduler_->start();
    transport_.take();
  }
  void give(LaneId lane, FrameType type, SharedBuffer payload = nullptr, uint64_t seq = 0) {
    Frame frame;
    frame.header.type = type;
    frame.header.session = lane;
    frame.header.seq = seq;
    frame.payload = std::move(payload);
    scheduler_->on_frame(lane, std::move(frame));
  }
  void join(const NodeInfo& self, const View& view = {}, uint64_t barriers = 0) {
    scheduler_->on_open(self.session, {});
    give(self.session, FrameType::kJoin, encode(JoinMessage{"test", self, barriers, view}));
  }
  void leave(LaneId lane, bool failed = false) { give(lane, FrameType::kLeave, encode(LeaveMessage{failed, ""})); }
  void arrive(LaneId lane, uint64_t number) { give(lane, FrameType::kBarrier, nullptr, number); }
  // Time goes by; everybody but `silent` beats.
  void pass(Duration time, std::vector<LaneId> silent = {}) {
    const Time end = clock_.now() + time;
    while (clock_.now() < end) {
      clock_.advance(options_.timing.heartbeat);
      for (const NodeInfo& node : scheduler_->view().nodes) {
        if (std::ranges::find(silent, node.session) != silent.end()) continue;
        give(node.session, FrameType::kHeartbeat, encode(HeartbeatMessage{scheduler_->view().version, ""}));
      }
      scheduler_->on_wake();
    }
  }
  std::vector<std::string> names() const {
    std::vector<std::string> list;
    for (const NodeInfo& node : scheduler_->view().nodes) {
      list.push_back(node.name() + "=" + std::to_string(node.session));
    }
    return list;
  }
  std::string refusal(LaneId lane) {
    for (const Frame& frame : transport_.take(lane)) {
      if (frame.header.type == FrameType::kRefused) return decode<TextMessage>(frame.bytes())->text;
    }
    return {};
  }
  std::vector<FrameType> types(LaneId lane) {
    std::vector<FrameType> list;
    for (const Frame& frame : transport_.take(lane)) list.push_back(frame.header.type);
    return list;
  }
  NodeState state(uint64_t session) const { return scheduler_->view().find(session)->state; }
  Phase phase() const { return scheduler_->view().phase; }

  Scheduler::Options options_;
  ManualClock clock_;
  RecordingTransport transport_;
  std::optional<Scheduler> scheduler_;
};

TEST_F(SchedulerTest, SaysWhomTheJobWaitsFor) {
  start(1, 2);
  join(worker(2));
  set_log_level(LogLevel::kInfo);
  testing::internal::CaptureStderr();
  for (int second = 0; second < 8; ++second) pass(std::chrono::seconds(1));
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_THAT(said, HasSubstr("waits for 1 of 1 server and 1 of 2 workers\n"));
  EXPECT_THAT(said, HasSubstr("waits for 1 of 1 server and 2 of 2 workers\n"));  // a silent one has gone
}

TEST_F(SchedulerTest, TheJobBeginsWhenAllAreThere) {
  start(1, 2);
  join(server(1, 10));
  join(worker(2));
  EXPECT_EQ(phase(), Phase::kForming);
  EXPECT_EQ(scheduler_->waiting_for(), "1 of 2 workers");
  join(worker(3));
  EXPECT_EQ(phase(), Phase::kRunning);
  EXPECT_THAT(names(), ElementsAre("server 0=1", "worker 0=2", "worker 1=3"));
  for (const LaneId lane : {1, 2, 3}) EXPECT_THAT(types(lane), Contains(FrameType::kView));
}

TEST_F(SchedulerTest, ServersGetRanksByWishThenByArrival) {
  start(3, 1);
  join(server(1, 10));
  join(server(2, 20, 0, 1, 0));
  join(server(3, 30));
  join(worker(4));
  EXPECT_THAT(names(), ElementsAre("server 0=2", "server 1=1", "server 2=3", "worker 0=4"));
}

TEST_F(SchedulerTest, TheOwnersOfAProcessStandTogetherHoweverTheyArrive) {
  start(2, 1);
  join(server(1, 10, 1, 2));
  join(server(2, 20, 0, 2));
  join(server(3, 20, 1, 2));
  join(worker(5));
  EXPECT_EQ(phase(), Phase::kForming);  // one owner of the first process is missing
  join(server(4, 10, 0, 2));
  EXPECT_THAT(names(), ElementsAre("server 0.0=2", "server 0.1=3", "server 1.0=4", "server 1.1=1", "worker 0=5"));
}

TEST_F(SchedulerTest, TheSameOwnerTwiceIsRefused) {
  start(1, 1);
  join(server(1, 10));
  join(server(2, 10));
  EXPECT_THAT(refusal(2), HasSubstr("here already"));
}

TEST_F(SchedulerTest, AnOwnerThatDoesNotFitItsProcessIsRefused) {
  start(2, 1);
  join(server(1, 10, 0, 2));
  join(server(2, 10, 1, 3));
  EXPECT_THAT(refusal(2), HasSubstr("does not fit"));
  join(server(3, 20, 5, 2));
  EXPECT_THAT(refusal(3), HasSubstr("does not fit"));
  join(server(4, 0));
  EXPECT_THAT(refusal(4), HasSubstr("does not fit"));
}

TEST_F(SchedulerTest, AServerTooManyIsRefused) {
  start(1, 1);
  join(server(1, 10));
  join(server(2, 20));
  join(worker(3));
  EXPECT_THAT(refusal(2), HasSubstr("all its servers"));
  join(server(4, 40));
  EXPECT_THAT(refusal(4), HasSubstr("all its servers"));
}

TEST_F(SchedulerTest, AWorkerTooManyIsRefused) {
  run(1);
  join(worker(3));
  EXPECT_THAT(refusal(3), HasSubstr("all 1 places"));
}

TEST_F(SchedulerTest, AWorkerThatIsStartedAgainAtOnceWaitsForThePlaceOfTheOneThatWasKilled) {
  run(2);
  scheduler_->on_close(3, unavailable("killed"));
  join(worker(4));
  const auto frames = transport_.take(4);
  ASSERT_EQ(frames.size(), 1u);
  ASSERT_EQ(frames[0].header.type, FrameType::kJoinWait);
  EXPECT_EQ(decode<TextMessage>(frames[0].bytes())->text, "the place of worker 1, whose connection has closed");
  EXPECT_THAT(scheduler_->status_json(), HasSubstr("the place of worker 1"));
  pass(options_.timing.reconnect, {3});
  EXPECT_THAT(names(), ElementsAre("server 0=1", "worker 0=2", "worker 1=3", "worker 1=4"));
}

TEST_F(SchedulerTest, AWorkerTooManyIsRefusedWhenAllHaveBeenHeard) {
  run(2);
  clock_.advance(options_.timing.heartbeat * 3);
  join(worker(4));
  EXPECT_THAT(types(4), ElementsAre(FrameType::kJoinWait)) << "the others are silent";
  scheduler_->on_close(3, unavailable("cut"));
  join(worker(3));
  pass(options_.timing.heartbeat);
  EXPECT_THAT(refusal(4), HasSubstr("all 2 places"));
}

TEST_F(SchedulerTest, WhoGivesUpLeavesItsPlaceToTheOneThatWaits) {
  run(2);
  leave(2);
  clock_.advance(options_.timing.heartbeat * 3);
  join(worker(4));
  leave(3, true);
  EXPECT_EQ(phase(), Phase::kRunning);
  EXPECT_THAT(names(), Contains("worker 1=4"));
}

TEST_F(SchedulerTest, WhoWaitsForAPlaceWhenTheJobEndsIsToldSo) {
  run(2);
  clock_.advance(options_.timing.heartbeat * 3);
  join(worker(4));
  leave(2);
  transport_.take();
  leave(3);
  EXPECT_EQ(phase(), Phase::kStopping);
  EXPECT_THAT(types(4), ElementsAre(FrameType::kView));
}

TEST_F(SchedulerTest, ANodeOfAnotherJobIsRefused) {
  start(1, 1);
  scheduler_->on_open(1, {});
  give(1, FrameType::kJoin, encode(JoinMessage{"other", worker(1), 0, {}}));
  EXPECT_THAT(refusal(1), HasSubstr("the job 'test'"));
}

TEST_F(SchedulerTest, ARoleThatTheCertificateDoesNotProveIsRefused) {
  start(1, 1);
  scheduler_->on_open(1, {"there", Role::kWorker, "worker"});
  give(1, FrameType::kJoin, encode(JoinMessage{"test", server(1, 10), 0, {}}));
  EXPECT_THAT(refusal(1), HasSubstr("certificate"));
}

TEST_F(SchedulerTest, OneWithACertificateMayComeBackWithALargeView) {
  start(1, 1);
  scheduler_->on_open(1, {"there", Role::kWorker, "worker"});
  scheduler_->on_open(2, {});
  EXPECT_TRUE(transport_.trusted.contains(1));
  EXPECT_FALSE(transport_.trusted.contains(2));
}

TEST_F(SchedulerTest, ANewMemberIsLiveWhateverItSays) {
  start(1, 1);
  join(server(1, 10));
  NodeInfo odd = worker(2);
  odd.state = NodeState::kDone;
  join(odd);
  EXPECT_EQ(phase(), Phase::kRunning);
  EXPECT_EQ(state(2), NodeState::kLive);
}

TEST_F(SchedulerTest, WhatIsNoJoinIsRefused) {
  start(1, 1);
  scheduler_->on_open(1, {});
  give(1, FrameType::kJoin, encode(TextMessage{"hello"}));
  EXPECT_THAT(refusal(1), HasSubstr("not readable"));
}

TEST_F(SchedulerTest, EnoughWorkersBeginAndALateOneGetsItsPlace) {
  start(1, 3, 1);
  join(server(1, 10));
  join(worker(2, 2));
  EXPECT_EQ(phase(), Phase::kRunning);
  join(worker(3));
  EXPECT_THAT(names(), ElementsAre("server 0=1", "worker 2=2", "worker 0=3"));
}

TEST_F(SchedulerTest, ABarrierOpensWhenAllHaveCome) {
  run(2);
  transport_.take();
  arrive(2, 1);
  const auto wait = transport_.take(2);
  ASSERT_EQ(wait.size(), 1u);
  EXPECT_EQ(decode<TextMessage>(wait[0].bytes())->text, "worker 1");
  arrive(3, 1);
  for (const LaneId lane : {2, 3}) {
    const auto release = transport_.take(lane);
    ASSERT_EQ(release.size(), 1u);
    EXPECT_EQ(release[0].header.type, FrameType::kBarrierRelease);
    EXPECT_EQ(release[0].header.seq, 1u);
  }
}

TEST_F(SchedulerTest, ALostReleaseIsGivenAgainAndOpensNoOtherBarrier) {
  run(2);
  arrive(2, 1);
  arrive(3, 1);
  transport_.take();
  arrive(2, 1);
  EXPECT_EQ(transport_.take(2).at(0).header.seq, 1u);
  arrive(2, 2);
  EXPECT_THAT(types(2), ElementsAre(FrameType::kBarrierWait));
}

TEST_F(SchedulerTest, ABarrierDoesNotWaitForTheDeadNorForThoseWhoAreDone) {
  start(1, 3);
  join(server(1, 10));
  for (const uint64_t session : {2, 3, 4}) join(worker(session));
  arrive(2, 1);
  leave(3);
  transport_.take();
  leave(4, true);
  EXPECT_THAT(types(2), Contains(FrameType::kBarrierRelease));
}

TEST_F(SchedulerTest, ALateWorkerIsToldTheNumberOfBarriers) {
  start(1, 2, 1);
  join(server(1, 10));
  join(worker(2));
  arrive(2, 1);
  transport_.take();
  join(worker(3));
  const auto sent = transport_.take(3);
  ASSERT_GE(sent.size(), 1u);
  EXPECT_EQ(sent[0].header.type, FrameType::kView);
  EXPECT_EQ(sent[0].header.seq, 1u);
}

TEST_F(SchedulerTest, ASilentWorkerIsDeadAndTheOthersGoOn) {
  run(2);
  pass(options_.timing.death + std::chrono::seconds(1), {3});
  EXPECT_EQ(state(3), NodeState::kDead);
  EXPECT_EQ(state(2), NodeState::kLive);
  EXPECT_EQ(phase(), Phase::kRunning);
}

TEST_F(SchedulerTest, AWorkerWhoseLaneClosedMayComeBack) {
  run(1);
  const View view = scheduler_->view();
  scheduler_->on_close(2, unavailable("cut"));
  clock_.advance(options_.timing.reconnect / 2);
  scheduler_->on_wake();
  EXPECT_EQ(state(2), NodeState::kLive);
  join(worker(2), view);
  pass(std::chrono::seconds(2));
  EXPECT_EQ(state(2), NodeState::kLive);
}

TEST_F(SchedulerTest, AServerWhoseLaneClosedHasAsLongAsASilentOne) {
  run(1);
  const View view = scheduler_->view();
  scheduler_->on_close(1, unavailable("cut"));
  pass(options_.timing.death - std::chrono::seconds(1), {1});
  EXPECT_EQ(state(1), NodeState::kLive);
  join(server(1, 10), view);
  pass(std::chrono::seconds(2));
  EXPECT_EQ(phase(), Phase::kRunning);
  scheduler_->on_close(1, unavailable("killed"));
  pass(options_.timing.death, {1});
  EXPECT_EQ(phase(), Phase::kFailed);
  EXPECT_THAT(scheduler_->view().reason, HasSubstr("its connection closed 5.0 s ago"));
}

TEST_F(SchedulerTest, WhoIsNotConnectedGetsNoPlace) {
  start(1, 2);
  join(server(1, 10));
  join(worker(2));
  scheduler_->on_close(2, unavailable("cut"));
  join(worker(3));
  EXPECT_EQ(phase(), Phase::kForming);
  EXPECT_EQ(scheduler_->waiting_for(), "1 of 2 workers");
  join(worker(2));
  EXPECT_EQ(phase(), Phase::kRunning);
}

TEST_F(SchedulerTest, WhoReplacesTheDeadTakesItsRank) {
  run(2);
  leave(2, true);
  join(worker(4));
  EXPECT_EQ(scheduler_->view().find(4)->rank, 0u);
}

TEST_F(SchedulerTest, AServerThatDiesEndsTheJob) {
  run(1);
  pass(options_.timing.death + std::chrono::seconds(1), {1});
  EXPECT_EQ(phase(), Phase::kFailed);
  EXPECT_THAT(scheduler_->outcome().error().message, HasSubstr("server 0 died"));
}

TEST_F(SchedulerTest, AServerThatLeavesWhileWorkersWorkEndsTheJob) {
  run(1);
  leave(1);
  EXPECT_EQ(phase(), Phase::kFailed);
  EXPECT_THAT(scheduler_->outcome().error().message, HasSubstr("parameters are lost"));
}

TEST_F(SchedulerTest, AWorkersDeathEndsTheJobIfAskedTo) {
  options_.worker_death = WorkerDeath::kFail;
  run(2);
  leave(3, true);
  EXPECT_EQ(phase(), Phase::kFailed);
}

TEST_F(SchedulerTest, TheServersStopWhenTheWorkersAreDone) {
  run(2);
  leave(2);
  EXPECT_EQ(phase(), Phase::kRunning);
  leave(3);
  EXPECT_EQ(phase(), Phase::kStopping);
  EXPECT_FALSE(scheduler_->finished());
  leave(1);
  EXPECT_TRUE(scheduler_->finished());
  EXPECT_TRUE(scheduler_->outcome());
}

TEST_F(SchedulerTest, WithAllWorkersDeadItWaitsForANewOneAndThenFails) {
  run(1);
  leave(2, true);
  pass(options_.timing.restart_wait - std::chrono::seconds(1));
  EXPECT_EQ(phase(), Phase::kRunning);
  pass(std::chrono::seconds(2));
  EXPECT_EQ(phase(), Phase::kFailed);
  EXPECT_THAT(scheduler_->outcome().error().message, HasSubstr("every worker died"));
}

TEST_F(SchedulerTest, ANewWorkerSavesTheJobOfTheDead) {
  run(1);
  leave(2, true);
  pass(options_.timing.restart_wait - std::chrono::seconds(1));
  join(worker(3));
  pass(options_.timing.restart_wait * 2);
  EXPECT_EQ(phase(), Phase::kRunning);
}

TEST_F(SchedulerTest, AJobThatDoesNotFormNamesWhoIsMissing) {
  start(2, 1);
  join(worker(2));
  clock_.advance(options_.timing.join);
  scheduler_->on_wake();
  EXPECT_EQ(scheduler_->outcome().error().code, Code::kTimeout);
  EXPECT_THAT(scheduler_->outcome().error().message, HasSubstr("2 of 2 servers"));
}

TEST_F(SchedulerTest, WhoComesAfterTheEndIsToldSo) {
  run(1);
  leave(2);
  transport_.take();
  join(worker(3));
  const auto sent = transport_.take(3);
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(decode<View>(sent[0].bytes())->phase, Phase::kStopping);
}

TEST_F(SchedulerTest, ARestartedOneLearnsTheJobFromItsMembers) {
  run(2);
  const View before = scheduler_->view();
  restart();
  join(before.nodes[1], before, 4);
  EXPECT_EQ(scheduler_->waiting_for(), "server 0, worker 1 to come back");
  join(before.nodes[0], before, 0);
  join(before.nodes[2], before, 3);
  pass(std::chrono::seconds(1));
  EXPECT_EQ(phase(), Phase::kRunning);
  EXPECT_EQ(scheduler_->view().nodes, before.nodes);
  EXPECT_GT(scheduler_->view().version, before.version);
  transport_.take();
  arrive(3, 4);  // passed under the old one
  EXPECT_EQ(transport_.take(3).at(0).header.type, FrameType::kBarrierRelease);
}

TEST_F(SchedulerTest, ARestartedOneBuriesThoseWhoDoNotComeBack) {
  run(2);
  const View before = scheduler_->view();
  restart();
  join(before.nodes[0], before);
  join(before.nodes[1], before);
  pass(options_.timing.death + std::chrono::seconds(1), {3});
  EXPECT_EQ(state(3), NodeState::kDead);
  EXPECT_EQ(state(2), NodeState::kLive);
}

TEST_F(SchedulerTest, WhoWasBackAndIsCutWhenTheOthersAreGivenUpIsNotGivenUpWithThem) {
  run(2);
  const View before = scheduler_->view();
  restart();
  join(before.nodes[0], before);
  join(before.nodes[1], before);
  pass(options_.timing.death - options_.timing.heartbeat, {3});
  scheduler_->on_close(1, unavailable("cut"));
  pass(options_.timing.heartbeat, {1, 3});
  EXPECT_EQ(state(3), NodeState::kDead);
  EXPECT_EQ(state(1), NodeState::kLive);
  EXPECT_EQ(phase(), Phase::kRunning);
}

TEST_F(SchedulerTest, WhoIsAtABarrierOfARestartedOneIsToldWhoMustComeBack) {
  run(2);
  const View before = scheduler_->view();
  restart();
  const auto told = [&] {
    transport_.take();
    arrive(2, 1);
    const auto frames = transport_.take(2);
    return frames.empty() ? "" : decode<TextMessage>(frames.back().bytes())->text;
  };
  join(before.nodes[1], before);
  EXPECT_EQ(told(), "server 0, worker 1 to come back");
  join(before.nodes[0], before);
  join(before.nodes[2], before);
  EXPECT_THAT(told(), HasSubstr("the new scheduler"));
  pass(options_.timing.heartbeat);
  EXPECT_EQ(told(), "worker 1");
}

TEST_F(SchedulerTest, ARestartedOneTakesUpAMemberThatFirstCameAsNew) {
  run(2);
  const View before = scheduler_->view();
  restart();
  join(worker(3));  // it had not heard that it had a place
  join(before.nodes[0], before);
  join(before.nodes[1], before);
  pass(std::chrono::seconds(1));
  EXPECT_EQ(scheduler_->view().nodes, before.nodes);
  EXPECT_EQ(phase(), Phase::kRunning);
}

TEST_F(SchedulerTest, TheNewestViewOfTheMembersWins) {
  start(1, 2, 1);
  join(server(1, 10));
  join(worker(2));
  const View old = scheduler_->view();
  join(worker(3));
  const View latest = scheduler_->view();
  restart();
  join(old.nodes[0], old);
  join(latest.nodes[2], latest);
  join(latest.nodes[1], latest);
  pass(std::chrono::seconds(1));
  EXPECT_EQ(scheduler_->view().nodes, latest.nodes);
}

TEST_F(SchedulerTest, AFullJobThatIsTakenUpHasNoRoomForNewcomers) {
  start(1, 1);
  View full;
  full.version = 5;
  full.phase = Phase::kRunning;
  for (uint64_t session = 1; session <= kNodesMax; ++session) full.nodes.push_back(worker(session, 0));
  join(worker(1'000'000));
  join(worker(1), full);
  EXPECT_THAT(refusal(1'000'000), HasSubstr("full"));
  EXPECT_EQ(scheduler_->view().nodes.size(), kNodesMax);
}

TEST_F(SchedulerTest, AMemberOfAnotherRunIsRefused) {
  run(1);
  View other = scheduler_->view();
  other.nodes = {server(8, 80), worker(9)};
  join(worker(9), other);
  EXPECT_THAT(refusal(9), HasSubstr("an earlier run"));
  EXPECT_EQ(scheduler_->view().find(9), nullptr);
}

TEST_F(SchedulerTest, LanesThatCloseAreForgottenAndFramesOfStrangersIgnored) {
  start(1, 1);
  for (LaneId lane = 100; lane < 200; ++lane) {
    scheduler_->on_open(lane, {});
    give(lane, FrameType::kHeartbeat, encode(HeartbeatMessage{}));
    give(lane, FrameType::kLeave, encode(LeaveMessage{}));
    arrive(lane, 1);
    scheduler_->on_close(lane, unavailable("bye"));
  }
  EXPECT_THAT(transport_.take(), IsEmpty());
}

TEST_F(SchedulerTest, WhoSpeaksForAnotherOnItsOwnLaneIsIgnored) {
  run(2);
  Frame forged;
  forged.header.type = FrameType::kLeave;
  forged.header.session = 2;
  forged.payload = encode(LeaveMessage{true, "forged"});
  scheduler_->on_frame(3, std::move(forged));
  EXPECT_EQ(state(2), NodeState::kLive);
}

TEST_F(SchedulerTest, TheLongestSilenceIsThatOfTheLiveOnes) {
  run(2);
  pass(std::chrono::seconds(2), {3});
  EXPECT_NEAR(scheduler_->longest_silence_ms(), 2000, 600);
  leave(3);
  EXPECT_NEAR(scheduler_->longest_silence_ms(), 0, 600);
}

}  // namespace
}  // namespace pscloud

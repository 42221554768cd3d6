#include "engine/worker/worker_core.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "base/log.h"
#include "net/recording_transport.h"

namespace pscloud {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr uint64_t kWorkerSession = 5;
constexpr uint64_t kOwner = 11;

// The test plays the scheduler and the one owner. Lane 1 goes to the scheduler, lane 2 to the owner.
class WorkerCoreTest : public testing::Test {
 protected:
  using Outcome = std::shared_ptr<std::optional<Result<>>>;

  WorkerCoreTest() {
    set_log_level(LogLevel::kSilent);
    WorkerCore::Options options;
    options.member.job = "test";
    options.member.scheduler = "scheduler";
    options.member.self.session = kWorkerSession;
    options.member.self.rank = Member::kNoRank;
    core_.emplace(options, transport_, clock_, random_, metrics_);
  }
  ~WorkerCoreTest() override { set_log_level(LogLevel::kInfo); }

  static Outcome outcome() { return std::make_shared<std::optional<Result<>>>(); }
  static WorkerCore::Done into(const Outcome& outcome) {
    return [outcome](const Result<>& result) { *outcome = result; };
  }
  // Has it ended with that text in its message?
  static std::string error(const Outcome& outcome) {
    if (!*outcome) return "not ended";
    return **outcome ? "ok" : (*outcome)->error().message;
  }

  void give(LaneId lane, FrameType type, uint64_t seq = 0, SharedBuffer payload = nullptr) {
    Frame frame;
    frame.header.type = type;
    frame.header.session = kWorkerSession;
    frame.header.seq = seq;
    frame.header.extra = Credit{}.packed();
    frame.payload = std::move(payload);
    core_->on_frame(lane, std::move(frame));
  }
  void view(Phase phase = Phase::kRunning, NodeState state = NodeState::kLive) {
    View view;
    view.version = ++version_;
    view.phase = phase;
    view.reason = phase == Phase::kFailed ? "server 0 died" : "";
    NodeInfo node;
    node.role = Role::kServer;
    node.session = kOwner;
    node.address = "owner";
    view.nodes.push_back(node);
    if (two_owners_) {
      node.rank = 1;
      node.session = kOwner + 1;
      node.address = "other";
      view.nodes.push_back(node);
    }
    node = {};
    node.session = kWorkerSession;
    node.state = state;
    view.nodes.push_back(node);
    give(1, FrameType::kView, 0, encode(view));
  }
  // Joined, and the owner knows us.
  Outcome join(uint32_t min_clock = 0) {
    const Outcome ready = outcome();
    core_->start(into(ready));
    core_->on_open(1, {});
    view();
    core_->on_open(2, {});
    give(2, FrameType::kSyncReply, 1, encode(SyncReplyMessage{0, min_clock, Credit{}.packed(), {}}));
    if (two_owners_) {
      core_->on_open(3, {});
      give(3, FrameType::kSyncReply, 1, encode(SyncReplyMessage{0, min_clock, Credit{}.packed(), {}}));
    }
    return ready;
  }
  // A request to that owner alone.
  Outcome ask(uint32_t owner) {
    std::vector<Slice> slices(1);
    slices[0].owner = owner;
    slices[0].part.type = FrameType::kTally;
    const Outcome done = outcome();
    core_->submit("tally", std::move(slices), into(done));
    return done;
  }
  Outcome push() {
    auto spec = std::make_shared<const TableSpec>();
    const std::vector<Key> keys = {7};
    const std::vector<float> values = {1};
    const Outcome done = outcome();
    core_->submit("push", slice_keys(FrameType::kPush, 9, spec, 1, keys, values, {}), into(done));
    return done;
  }
  std::vector<FrameType> types(LaneId lane) {
    std::vector<FrameType> list;
    for (const Frame& frame : transport_.take(lane)) list.push_back(frame.header.type);
    return list;
  }
  // In steps, as the transport would; the scheduler beats, the owner says nothing.
  void pass(Duration time) {
    const Time end = clock_.now() + time;
    while (clock_.now() < end) {
      clock_.advance_to(std::min(end, std::max(transport_.wake, clock_.now() + Duration(1))));
      give(1, FrameType::kHeartbeatReply);
      core_->on_wake();
    }
  }

  ManualClock clock_;
  Random random_{1};
  Metrics metrics_;
  RecordingTransport transport_;
  std::optional<WorkerCore> core_;
  uint64_t version_ = 0;
  bool two_owners_ = false;  // the second has lane 3
};

TEST_F(WorkerCoreTest, IsReadyWhenEveryOwnerKnowsIt) {
  const Outcome ready = outcome();
  core_->start(into(ready));
  core_->on_open(1, {});
  view();
  EXPECT_EQ(error(ready), "not ended");
  core_->on_open(2, {});
  give(2, FrameType::kSyncReply, 1, encode(SyncReplyMessage{0, 0, Credit{}.packed(), {}}));
  EXPECT_EQ(error(ready), "ok");
  EXPECT_EQ(core_->clock(), 0u);
}

TEST_F(WorkerCoreTest, OneThatComesLateBeginsAtTheOthersClockAndSaysSoFirst) {
  join(7);
  EXPECT_EQ(core_->clock(), 7u);
  push();
  const auto sent = transport_.take(2);
  ASSERT_EQ(sent.size(), 3u);
  EXPECT_EQ(sent[1].header.type, FrameType::kClock);
  EXPECT_EQ(sent[1].header.clock, 7u);
  EXPECT_EQ(sent[2].header.type, FrameType::kPush);
}

TEST_F(WorkerCoreTest, ARequestThatTakesTooLongNamesWhomItWaitedFor) {
  join();
  const Outcome pushed = push();
  pass(Timing{}.request);
  EXPECT_THAT(error(pushed), HasSubstr("push took more than 120 s"));
  EXPECT_THAT(error(pushed), HasSubstr("server 0 at owner"));
}

TEST_F(WorkerCoreTest, EachRequestThatTakesTooLongNamesTheServerThatItWaitedFor) {
  two_owners_ = true;
  join();
  ask(1);
  EXPECT_EQ(core_->waiting_for(), "server 1 at other");
  pass(std::chrono::seconds(1));
  const Outcome first = ask(0);
  const Outcome second = ask(1);
  const Outcome barrier = outcome();
  core_->barrier(into(barrier));
  EXPECT_EQ(core_->waiting_for(), "server 1 at other") << "the oldest";
  give(1, FrameType::kBarrierWait, 0, encode(TextMessage{"worker 7"}));
  pass(Timing{}.request);
  EXPECT_THAT(error(first), HasSubstr("waited for server 0 at owner"));
  EXPECT_THAT(error(second), HasSubstr("waited for server 1 at other"));
  EXPECT_THAT(error(barrier), HasSubstr("waited for barrier 1: worker 7"));
}

TEST_F(WorkerCoreTest, RequestsThatWereNeverSentEndTogetherWithThoseThatWere) {
  join();
  const Credit one{.requests = 1, .bytes = 1 << 20};
  const Outcome answered = push();
  Frame reply;
  reply.header.type = FrameType::kReply;
  reply.header.session = kWorkerSession;
  reply.header.seq = 1;
  reply.header.extra = one.packed();
  core_->on_frame(2, std::move(reply));
  ASSERT_EQ(error(answered), "ok");
  std::vector<Outcome> all;
  for (int i = 0; i < 5; ++i) all.push_back(push());  // one is sent
  pass(Timing{}.request);
  for (const Outcome& one_of_them : all) EXPECT_THAT(error(one_of_them), HasSubstr("waited for server 0 at owner"));
  transport_.take();
  give(2, FrameType::kReply, 2);
  EXPECT_THAT(types(2), testing::Not(Contains(FrameType::kPush))) << "they were given up";
}

TEST_F(WorkerCoreTest, AFencedWorkerEndsAllItsRequests) {
  join();
  const Outcome pushed = push();
  give(2, FrameType::kFenced, 1, encode(TextMessage{"worker 0 was declared dead"}));
  EXPECT_THAT(error(pushed), HasSubstr("declared dead"));
  EXPECT_THAT(error(push()), HasSubstr("declared dead"));
}

TEST_F(WorkerCoreTest, AFailedJobEndsAllItsRequestsAndSaysGoodbye) {
  join();
  const Outcome pushed = push();
  const Outcome barrier = outcome();
  core_->barrier(into(barrier));
  transport_.take();
  view(Phase::kFailed);
  EXPECT_THAT(error(pushed), HasSubstr("server 0 died"));
  EXPECT_THAT(error(barrier), HasSubstr("server 0 died"));
  EXPECT_THAT(types(1), Contains(FrameType::kLeave));
}

TEST_F(WorkerCoreTest, LeavesWhenEverythingIsAnswered) {
  join();
  push();
  const Outcome left = outcome();
  core_->leave(false, "", into(left));
  EXPECT_THAT(types(1), testing::Not(Contains(FrameType::kLeave)));
  give(2, FrameType::kReply, 1);
  EXPECT_THAT(types(1), Contains(FrameType::kLeave));
  view(Phase::kRunning, NodeState::kDone);
  EXPECT_EQ(error(left), "ok");
}

TEST_F(WorkerCoreTest, LeavingDoesNotWaitForEver) {
  join();
  push();
  const Outcome left = outcome();
  core_->leave(false, "", into(left));
  pass(Timing{}.request + Timing{}.stop);
  EXPECT_THAT(error(left), HasSubstr("server 0 at owner"));
}

TEST_F(WorkerCoreTest, NothingMayBeAskedAfterLeaving) {
  join();
  core_->leave(false, "", [](const Result<>&) {});
  const Outcome barrier = outcome();
  core_->barrier(into(barrier));
  EXPECT_THAT(error(barrier), HasSubstr("has left"));
  const Outcome clock = outcome();
  core_->tick(into(clock));
  EXPECT_THAT(error(clock), HasSubstr("has left"));
  EXPECT_THAT(error(push()), HasSubstr("has left"));
}

TEST_F(WorkerCoreTest, ACallbackMayLeave) {
  join();
  const Outcome left = outcome();
  auto spec = std::make_shared<const TableSpec>();
  core_->submit("push", slice_keys(FrameType::kPush, 9, spec, 1, std::vector<Key>{7}, std::vector<float>{1}, {}),
                [&](const Result<>&) { core_->leave(false, "", into(left)); });
  give(2, FrameType::kReply, 1);
  EXPECT_THAT(types(1), Contains(FrameType::kLeave));
}

TEST_F(WorkerCoreTest, ACallbackOfAFailureMayAskAgain) {
  join();
  Outcome second;
  auto spec = std::make_shared<const TableSpec>();
  core_->submit("push", slice_keys(FrameType::kPush, 9, spec, 1, std::vector<Key>{7}, std::vector<float>{1}, {}),
                [&](const Result<>&) { second = push(); });
  view(Phase::kFailed);
  ASSERT_TRUE(second);
  EXPECT_THAT(error(second), HasSubstr("server 0 died"));
}

TEST_F(WorkerCoreTest, TwoThreadsAtABarrierAreTold) {
  join();
  core_->barrier([](const Result<>&) {});
  const Outcome second = outcome();
  core_->barrier(into(second));
  EXPECT_THAT(error(second), HasSubstr("another thread"));
}

TEST_F(WorkerCoreTest, ABarrierGivenUpCanBeWaitedForAgain) {
  join();
  const Outcome first = outcome();
  core_->barrier(into(first));
  pass(Timing{}.request);
  EXPECT_THAT(error(first), HasSubstr("barrier took more than"));
  const Outcome again = outcome();
  core_->barrier(into(again));
  give(1, FrameType::kBarrierRelease, 1);
  EXPECT_EQ(error(again), "ok");
}

TEST_F(WorkerCoreTest, ABarrierThatOpenedAfterItWasGivenUpCountsAsPassed) {
  join();
  core_->barrier([](const Result<>&) {});
  pass(Timing{}.request);
  give(1, FrameType::kBarrierRelease, 1);
  const Outcome again = outcome();
  core_->barrier(into(again));
  EXPECT_EQ(error(again), "ok");
  transport_.take();
  core_->barrier([](const Result<>&) {});
  EXPECT_EQ(transport_.take(1).at(0).header.seq, 2u);
}

TEST_F(WorkerCoreTest, AClockGoesToTheOwner) {
  join();
  transport_.take();
  core_->tick([](const Result<>&) {});
  const auto sent = transport_.take(2);
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].header.clock, 1u);
  EXPECT_EQ(core_->clock(), 1u);
}

TEST_F(WorkerCoreTest, APushLastsFromTheCallToTheLastAnswer) {
  join();
  const Outcome pushed = push();
  clock_.advance(std::chrono::milliseconds(10));
  give(2, FrameType::kReply, 1);
  EXPECT_EQ(error(pushed), "ok");
  EXPECT_NEAR(*quantile(*metrics_.durations("pscloud_push_seconds"), 0.5), 10000, 2000);
  EXPECT_TRUE(metrics_.durations("pscloud_pull_seconds")->empty());
  push();
  pass(Timing{}.request);  // never answered: it failed, and took no time
  EXPECT_EQ(counts_of(metrics_.histogram("pscloud_push_seconds", "")).size(), 1u);
}

TEST_F(WorkerCoreTest, StalenessIsTheDistanceToTheSlowest) {
  join();
  EXPECT_EQ(metrics_.total("pscloud_clock_distance"), std::nullopt) << "no clock, no distance";
  for (int i = 0; i < 3; ++i) core_->tick(into(outcome()));
  EXPECT_EQ(metrics_.total("pscloud_clock_distance"), 3);
  Frame reply;
  reply.header.type = FrameType::kReply;
  reply.header.session = kWorkerSession;
  reply.header.seq = 1;
  reply.header.extra = Credit{}.packed();
  reply.header.clock = 2;  // all others have finished two
  core_->on_frame(2, std::move(reply));
  EXPECT_THAT(core_->status_json(), HasSubstr("\"clock\":3"));
  EXPECT_EQ(metrics_.total("pscloud_clock_distance"), 1);
}

}  // namespace
}  // namespace pscloud

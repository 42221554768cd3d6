// Long because: all claims about the owner have one fixture, which plays everybody else.

#include "engine/server/shard_owner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <optional>

#include "base/log.h"
#include "net/recording_transport.h"

namespace pscloud {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr uint64_t kOwner = 11;
constexpr LaneId kAnna = 1001;  // lanes and sessions of two workers
constexpr LaneId kBert = 1002;

// One owner that holds everything. The test plays scheduler and workers; a worker's session is its lane's number.
class ShardOwnerTest : public testing::Test {
 protected:
  ShardOwnerTest() { set_log_level(LogLevel::kSilent); }
  ~ShardOwnerTest() override { set_log_level(LogLevel::kInfo); }

  void start(ShardOwner::Options options = {}) {
    options.member.job = "test";
    options.member.scheduler = "scheduler";
    options.member.self.session = kOwner;
    options.member.self.role = Role::kServer;
    owner_.emplace(options, updaters_, transport_, clock_, random_, metrics_);
    owner_->start();
    scheduler_ = transport_.last_lane;
    owner_->on_open(scheduler_, {});
    transport_.take();
  }
  void view(const std::map<uint64_t, NodeState>& workers, Phase phase = Phase::kRunning) {
    View view;
    view.version = ++version_;
    view.phase = phase;
    NodeInfo node;
    node.role = Role::kServer;
    node.session = kOwner;
    view.nodes.push_back(node);
    for (const auto& [session, state] : workers) {
      node = {};
      node.session = session;
      node.state = state;
      node.rank = static_cast<uint32_t>(session - kAnna);
      view.nodes.push_back(node);
    }
    give(scheduler_, FrameType::kView, 0, 0, encode(view));
    transport_.take(scheduler_);
  }
  // Running, with both workers connected and one table.
  void run(Consistency consistency = Consistency::async(), ShardOwner::Options options = {}) {
    start(std::move(options));
    view({{kAnna, NodeState::kLive}, {kBert, NodeState::kLive}});
    spec_.name = "w";
    spec_.consistency = consistency;
    for (const LaneId worker : {kAnna, kBert}) {
      owner_->on_open(worker, {});
      sync(worker);
      give(worker, FrameType::kCreateTable, worker, ++seq_[worker], encode(spec_));
    }
    transport_.take();
  }

  void give(LaneId lane, FrameType type, uint64_t session, uint64_t seq, SharedBuffer payload = nullptr,
            std::function<void(FrameHeader&)> change = {}) {
    Frame frame;
    frame.header.type = type;
    frame.header.session = session;
    frame.header.seq = seq;
    frame.payload = std::move(payload);
    if (change) change(frame.header);
    owner_->on_frame(lane, std::move(frame));
  }
  void sync(LaneId worker, uint64_t meant = kOwner) {
    give(worker, FrameType::kSync, worker, 1, nullptr, [&](FrameHeader& h) { h.extra = meant; });
  }
  // A request for key 7 with the next number, or with `seq`.
  void ask(FrameType type, LaneId worker, std::optional<uint64_t> seq = {}, uint32_t clock = 0, uint16_t flags = 0) {
    const std::vector<Key> keys = {7};
    const std::vector<float> values(type == FrameType::kPull ? 0 : 1, 1.0f);
    SharedBuffer payload;
    if (type != FrameType::kClock) payload = encode_payload({}, keys, Floats(values), 1, {&random_, nullptr})->joined();
    give(worker, type, worker, seq ? *seq : ++seq_[worker], payload, [&](FrameHeader& h) {
      h.table = table_id("w");
      h.count = 1;
      h.clock = clock;
      h.flags = flags;
    });
  }
  float value() {
    std::vector<float> out(1);
    EXPECT_TRUE(owner_->peek(table_id("w"), 7, out));
    return out[0];
  }
  std::vector<FrameType> types(LaneId lane) {
    std::vector<FrameType> list;
    for (const Frame& frame : transport_.take(lane)) list.push_back(frame.header.type);
    return list;
  }
  // What a reply with one row of one float holds.
  float read(const Frame& reply) {
    const auto payload = decode_payload(reply, 1, 1, false, true, {&random_, nullptr});
    return payload ? payload->values[0] : -1;
  }
  static std::string text(const Frame& frame) {
    if (frame.header.flags & kFlagError) return decode<ErrorMessage>(frame.bytes())->text;
    return decode<TextMessage>(frame.bytes())->text;
  }

  UpdaterCatalog updaters_;
  ManualClock clock_;
  Random random_{1};
  Metrics metrics_;
  RecordingTransport transport_;
  std::optional<ShardOwner> owner_;
  TableSpec spec_;
  LaneId scheduler_ = 0;
  uint64_t version_ = 0;
  std::map<LaneId, uint64_t> seq_;
};

TEST_F(ShardOwnerTest, APushIsAppliedAndAnswered) {
  run();
  ask(FrameType::kPush, kAnna);
  EXPECT_EQ(value(), 1);
  EXPECT_THAT(types(kAnna), ElementsAre(FrameType::kReply));
}

TEST_F(ShardOwnerTest, ARepeatedPushIsAppliedOnceAndAnsweredTwice) {
  run();
  ask(FrameType::kPush, kAnna);
  ask(FrameType::kPush, kAnna, seq_[kAnna]);
  EXPECT_EQ(value(), 1);
  EXPECT_THAT(types(kAnna), ElementsAre(FrameType::kReply, FrameType::kReply));
}

TEST_F(ShardOwnerTest, OfARepeatedPushPullOnlyTheReadIsDoneAgain) {
  run();
  ask(FrameType::kPushPull, kAnna);
  ask(FrameType::kPushPull, kAnna, seq_[kAnna]);
  const auto replies = transport_.take(kAnna);
  ASSERT_EQ(replies.size(), 2u);
  EXPECT_EQ(read(replies[0]), 1);
  EXPECT_EQ(read(replies[1]), 1);
}

TEST_F(ShardOwnerTest, APushThatCameTooEarlyWaitsForTheOneBefore) {
  run();
  ask(FrameType::kPush, kAnna, 3);
  EXPECT_EQ(value(), 0);
  EXPECT_THAT(types(kAnna), IsEmpty());
  ask(FrameType::kPush, kAnna, 2);
  EXPECT_EQ(value(), 2);
}

TEST_F(ShardOwnerTest, TheOutcomeOfAFailedPushIsRemembered) {
  run();
  give(kAnna, FrameType::kPush, kAnna, 2, nullptr, [](FrameHeader& h) { h.table = 12345; });
  EXPECT_THAT(text(transport_.take(kAnna).at(0)), HasSubstr("create or open it"));
  ask(FrameType::kPush, kAnna, 2, 0, kFlagOutcomeOnly);
  EXPECT_THAT(text(transport_.take(kAnna).at(0)), HasSubstr("create or open it"));
}

TEST_F(ShardOwnerTest, TheOutcomeOfWhatNeverArrivedIsNotInvented) {
  run();
  ask(FrameType::kPush, kAnna, 2, 0, kFlagOutcomeOnly);
  EXPECT_THAT(types(kAnna), IsEmpty());
}

TEST_F(ShardOwnerTest, AListItDoesNotHaveIsAskedFor) {
  run();
  KeyCache sender(1 << 20);
  const std::vector<Key> keys = {7};
  const std::vector<float> values = {1};
  const std::vector<FilterSpec> filters = {{FilterKind::kKeyCaching}};
  (void)encode_payload(filters, keys, Floats(values), 1, {&random_, &sender});
  const auto signature_only = encode_payload(filters, keys, Floats(values), 1, {&random_, &sender})->joined();
  give(kAnna, FrameType::kPush, kAnna, 2, signature_only, [](FrameHeader& h) {
    h.table = table_id("w");
    h.count = 1;
  });
  EXPECT_THAT(types(kAnna), ElementsAre(FrameType::kKeysUnknown));
  ask(FrameType::kPush, kAnna, 2);
  EXPECT_EQ(value(), 1);
}

TEST_F(ShardOwnerTest, ASyncTellsWhatHasArrivedAndWhatWaits) {
  run(Consistency::bsp());
  ask(FrameType::kPush, kAnna);
  ask(FrameType::kClock, kAnna, {}, 1);
  transport_.take();
  sync(kAnna);
  const auto answers = transport_.take(kAnna);
  ASSERT_GE(answers.size(), 1u);
  const auto state = decode<SyncReplyMessage>(answers[0].bytes());
  ASSERT_TRUE(state);
  EXPECT_EQ(state->accepted, 3u);
  EXPECT_THAT(state->waiting, ElementsAre(3));
  EXPECT_EQ(answers[1].header.type, FrameType::kWaiting);
}

TEST_F(ShardOwnerTest, AnEarlySyncIsAnsweredWhenTheViewComes) {
  start();
  view({{kAnna, NodeState::kLive}});
  owner_->on_open(kBert, {});
  sync(kBert);
  EXPECT_THAT(types(kBert), IsEmpty());
  view({{kAnna, NodeState::kLive}, {kBert, NodeState::kLive}});
  EXPECT_THAT(types(kBert), ElementsAre(FrameType::kSyncReply));
}

TEST_F(ShardOwnerTest, AnEarlySyncWhoseLaneClosedIsForgotten) {
  start();
  view({{kAnna, NodeState::kLive}});
  owner_->on_open(kBert, {});
  sync(kBert);
  owner_->on_close(kBert, unavailable("cut"));
  view({{kAnna, NodeState::kLive}, {kBert, NodeState::kLive}});
  EXPECT_THAT(types(kBert), IsEmpty());
}

TEST_F(ShardOwnerTest, ASyncMeantForAnotherOwnerClosesTheLane) {
  run();
  sync(kAnna, kOwner + 1);
  EXPECT_TRUE(transport_.closed.contains(kAnna));
  EXPECT_THAT(types(kAnna), IsEmpty());
}

TEST_F(ShardOwnerTest, ADeadWorkerIsFenced) {
  run();
  view({{kAnna, NodeState::kDead}, {kBert, NodeState::kLive}});
  ask(FrameType::kPush, kAnna);
  const auto answer = transport_.take(kAnna);
  ASSERT_EQ(answer.size(), 1u);
  EXPECT_EQ(answer[0].header.type, FrameType::kFenced);
  EXPECT_THAT(text(answer[0]), HasSubstr("worker 0"));
  EXPECT_EQ(value(), 0);
}

TEST_F(ShardOwnerTest, ARequestOnALaneThatDidNotSyncIsNotServed) {
  run();
  owner_->on_open(1003, {});
  const auto payload = encode_payload({}, std::vector<Key>{7}, Floats{1}, 1, {&random_, nullptr})->joined();
  give(1003, FrameType::kPush, kAnna, 2, payload, [](FrameHeader& h) {
    h.table = table_id("w");
    h.count = 1;
  });
  EXPECT_EQ(value(), 0);
  EXPECT_FALSE(transport_.trusted.contains(1003));
}

TEST_F(ShardOwnerTest, AServersCertificateOpensNoWorkersDoor) {
  run();
  owner_->on_open(1003, {"there", Role::kServer, "server"});
  EXPECT_TRUE(transport_.closed.contains(1003));
}

TEST_F(ShardOwnerTest, ABspReadWaitsForTheOthersAndSaysForWhom) {
  run(Consistency::bsp());
  ask(FrameType::kPush, kAnna);
  ask(FrameType::kClock, kAnna, {}, 1);
  transport_.take();
  ask(FrameType::kPull, kAnna);
  const auto waiting = transport_.take(kAnna);
  ASSERT_EQ(waiting.size(), 1u);
  EXPECT_EQ(waiting[0].header.type, FrameType::kWaiting);
  EXPECT_EQ(text(waiting[0]), "worker 1 to finish clock 0");
  ask(FrameType::kClock, kBert, {}, 1);
  const auto replies = transport_.take(kAnna);
  ASSERT_EQ(replies.size(), 2u);  // of the clock and of the pull
  EXPECT_EQ(read(replies[1]), 1);
}

TEST_F(ShardOwnerTest, WhoDiesIsWaitedForNoLonger) {
  run(Consistency::bsp());
  ask(FrameType::kClock, kAnna, {}, 1);
  transport_.take();
  view({{kAnna, NodeState::kLive}, {kBert, NodeState::kDead}});
  EXPECT_THAT(types(kAnna), ElementsAre(FrameType::kReply));
}

TEST_F(ShardOwnerTest, AWorkerMayPushAheadAndIsHeldBackBySsp) {
  run(Consistency::ssp(1));
  ask(FrameType::kClock, kAnna, {}, 1);
  ask(FrameType::kPush, kAnna);
  EXPECT_EQ(value(), 1);
  ask(FrameType::kClock, kAnna, {}, 2);
  ask(FrameType::kPush, kAnna);
  EXPECT_EQ(value(), 1);
  ask(FrameType::kClock, kBert, {}, 1);
  EXPECT_EQ(value(), 2);
}

TEST_F(ShardOwnerTest, AClockThatDoesNotFollowIsRefused) {
  run();
  ask(FrameType::kClock, kAnna, {}, 1);
  ask(FrameType::kClock, kAnna, {}, 3);
  const auto replies = transport_.take(kAnna);
  ASSERT_EQ(replies.size(), 2u);
  EXPECT_THAT(text(replies[1]), HasSubstr("clock 3 does not follow clock 1"));
}

TEST_F(ShardOwnerTest, AClockNearTheEndOfNumbersIsRefused) {
  run(Consistency::bsp());
  ask(FrameType::kClock, kAnna, {}, UINT32_MAX);
  EXPECT_TRUE(transport_.take(kAnna).at(0).header.flags & kFlagError);
  ask(FrameType::kPush, kAnna);
  view({{kAnna, NodeState::kDead}, {kBert, NodeState::kDead}});
  EXPECT_EQ(owner_->gate().minimum(), 1u);  // it went on, not back to 0
}

TEST_F(ShardOwnerTest, CountsThatNoFrameHoldsAreRefused) {
  run();
  give(kAnna, FrameType::kPull, kAnna, 2, nullptr, [](FrameHeader& h) {
    h.table = table_id("w");
    h.count = UINT32_MAX;
    h.flags = kFlagRange;
  });
  EXPECT_THAT(text(transport_.take(kAnna).at(0)), HasSubstr("more than one message holds"));
  ask(FrameType::kPush, kAnna, 3);
  EXPECT_EQ(value(), 1);
}

TEST_F(ShardOwnerTest, StrangersSyncsAreKeptWithinABound) {
  run();
  owner_->on_open(1003, {});
  for (uint64_t i = 0; i < 10'000; ++i) {
    give(1003, FrameType::kSync, 1 << 20 | i, 1, nullptr, [](FrameHeader& h) { h.extra = kOwner; });
  }
  EXPECT_THAT(types(1003), IsEmpty());
  EXPECT_FALSE(transport_.trusted.contains(1003));
}

TEST_F(ShardOwnerTest, WhoDoesNotReadItsAnswersIsCutOff) {
  run();
  transport_.unsent[kAnna] = uint64_t{1} << 40;
  sync(kAnna);
  EXPECT_TRUE(transport_.closed.contains(kAnna));
  EXPECT_THAT(types(kAnna), IsEmpty());
}

TEST_F(ShardOwnerTest, WhatWaitsCountsUnpackedInTheCredit) {
  spec_.width = 1000;
  ShardOwner::Options options;
  options.credit = {100, 10'000};
  run(Consistency::ssp(0), options);
  ask(FrameType::kClock, kAnna, {}, 1);
  const std::vector<float> zeros(1000);
  const std::vector<FilterSpec> filters = {{FilterKind::kDropZeros}};
  const auto payload = encode_payload(filters, std::vector<Key>{7}, Floats(zeros), 1, {&random_, nullptr})->joined();
  ASSERT_LT(payload->size(), 100u);
  for (int i = 0; i < 10; ++i) {
    give(kAnna, FrameType::kPush, kAnna, ++seq_[kAnna], payload, [](FrameHeader& h) {
      h.table = table_id("w");
      h.count = 1;
    });
  }
  EXPECT_GT(owner_->held_bytes(kAnna), 4000u);
  EXPECT_LE(owner_->held_bytes(kAnna), options.credit.bytes + 4 * 1024);  // and one request
}

TEST_F(ShardOwnerTest, TablesTogetherKeepWithinTheMemory) {
  ShardOwner::Options options;
  options.memory_max = 8 << 20;
  run(Consistency::async(), options);
  TableSpec other = spec_;
  other.name = "v";
  give(kAnna, FrameType::kCreateTable, kAnna, ++seq_[kAnna], encode(other));
  for (Key key = 0; key < 200'000; key += 1000) {
    std::vector<Key> keys;
    for (Key i = 0; i < 1000; ++i) keys.push_back(key + i);
    const std::vector<float> values(keys.size(), 1.0f);
    const auto payload = encode_payload({}, keys, Floats(values), keys.size(), {&random_, nullptr})->joined();
    for (const char* name : {"w", "v"}) {
      give(kAnna, FrameType::kPush, kAnna, ++seq_[kAnna], payload, [&](FrameHeader& h) {
        h.table = table_id(name);
        h.count = 1000;
      });
    }
  }
  EXPECT_LE(owner_->table(table_id("w"))->bytes() + owner_->table(table_id("v"))->bytes(), options.memory_max);
  EXPECT_TRUE(transport_.take(kAnna).back().header.flags & kFlagError);
}

TEST_F(ShardOwnerTest, KeyListsGiveWayToTables) {
  ShardOwner::Options options;
  options.memory_max = 4 << 20;
  run(Consistency::async(), options);
  std::vector<Key> keys(1000);
  const std::vector<FilterSpec> cached = {{FilterKind::kKeyCaching}};
  KeyCache cache(options.key_cache_bytes);
  const auto pull = [&](Key first) {
    for (Key i = 0; i < keys.size(); ++i) keys[i] = i + first;
    const auto payload = encode_payload(cached, keys, {}, keys.size(), {&random_, &cache})->joined();
    give(kAnna, FrameType::kPull, kAnna, ++seq_[kAnna], payload, [&](FrameHeader& h) {
      h.table = table_id("w");
      h.count = 1000;
    });
    return transport_.take(kAnna).back().header.type;
  };
  constexpr Key kLists = 300;  // 12 bytes a key: of few rows, and most of the memory
  for (Key round = 0; round < kLists; ++round) EXPECT_NE(pull(round), FrameType::kKeysUnknown);
  EXPECT_NE(pull(kLists - 1), FrameType::kKeysUnknown) << "it is kept";
  TableSpec other = spec_;
  other.name = "dense";
  other.kind = TableKind::kDense;
  other.rows = 500'000;
  give(kBert, FrameType::kCreateTable, kBert, ++seq_[kBert], encode(other));
  EXPECT_EQ(transport_.take(kBert).back().header.flags & kFlagError, 0);
  EXPECT_EQ(pull(kLists - 1), FrameType::kKeysUnknown);
}

TEST_F(ShardOwnerTest, CountsBytesOfRepliesBeforeAndAfterFilters) {
  spec_.width = 1000;
  spec_.pull_filters = {{FilterKind::kFloat16}};
  run();
  ask(FrameType::kPull, kAnna);
  const Traffic traffic(metrics_, "w");
  EXPECT_EQ(traffic.pull.plain.value(), 4000u);
  const uint64_t wire = traffic.pull.wire.value();
  EXPECT_TRUE(wire >= 2000 && wire < 2050) << wire;
  EXPECT_EQ(traffic.push.plain.value(), 8u);  // the key that was asked for
}

TEST_F(ShardOwnerTest, RowsInPlaceAreForSharedMemoryOnly) {
  run();
  spec_.name = "d";
  spec_.kind = TableKind::kDense;
  spec_.rows = 10;
  give(kAnna, FrameType::kCreateTable, kAnna, ++seq_[kAnna], encode(spec_));
  transport_.take();
  const auto pull = [&](uint16_t flags, uint32_t count, uint64_t first = 0) {
    const SharedBuffer payload = encode_payload({}, {}, {}, count, {&random_, nullptr})->joined();
    give(kAnna, FrameType::kPull, kAnna, ++seq_[kAnna], payload, [&](FrameHeader& h) {
      h.table = table_id("d");
      h.count = count;
      h.extra = first;
      h.flags = flags;
    });
    const auto replies = transport_.take(kAnna);
    EXPECT_EQ(replies.size(), 1u);
    const auto error = decode<ErrorMessage>(replies.at(0).bytes());
    return (replies.at(0).header.flags & kFlagError) && error ? error->text : "";
  };
  EXPECT_EQ(pull(kFlagRange, 10), "");
  EXPECT_EQ(pull(kFlagRange | kFlagInPlace, 10), "this worker is not on the machine of the server");
  EXPECT_THAT(pull(kFlagInPlace, 0), testing::HasSubstr("pulled by their numbers"));
  transport_.shared = true;
  EXPECT_EQ(pull(kFlagRange | kFlagInPlace, 10), "");
  EXPECT_EQ(pull(kFlagRange | kFlagInPlace, 0), "");
  EXPECT_THAT(pull(kFlagRange | kFlagInPlace, 8, 3), testing::HasSubstr("8 rows from 3 are not here"));
}

TEST_F(ShardOwnerTest, ATableOfTheSameNameMustHaveTheSameSpec) {
  run();
  TableSpec other = spec_;
  other.width = 2;
  give(kAnna, FrameType::kCreateTable, kAnna, ++seq_[kAnna], encode(other));
  EXPECT_THAT(text(transport_.take(kAnna).at(0)), HasSubstr("exists with another spec"));
}

TEST_F(ShardOwnerTest, ItLeavesWhenTheWorkersAreDone) {
  run();
  view({{kAnna, NodeState::kDone}, {kBert, NodeState::kDone}}, Phase::kStopping);
  EXPECT_FALSE(owner_->finished());
  owner_->on_close(scheduler_, unavailable("gone"));  // it is ending as we are
  EXPECT_TRUE(owner_->finished());
  EXPECT_TRUE(owner_->outcome());
}

TEST_F(ShardOwnerTest, AFailedJobSaysWhy) {
  start();
  View failed;
  failed.version = 1;
  failed.phase = Phase::kFailed;
  failed.reason = "worker 3 died";
  NodeInfo self;
  self.role = Role::kServer;
  self.session = kOwner;
  failed.nodes = {self};
  give(scheduler_, FrameType::kView, 0, 0, encode(failed));
  EXPECT_THAT(owner_->outcome().error().message, HasSubstr("worker 3 died"));
}

TEST_F(ShardOwnerTest, SetsRowsOnceAndOnlyWholeOnes) {
  run();
  const auto set = [&](uint64_t seq, const SetRowsMessage& message) {
    give(kAnna, FrameType::kSetRows, kAnna, seq, encode(message), [](FrameHeader& h) { h.table = table_id("w"); });
    return transport_.take(kAnna).at(0);
  };
  const uint64_t seq = ++seq_[kAnna];
  EXPECT_EQ(set(seq, {ScanKind::kState, {9, 7}, {1, 5}}).header.flags & kFlagError, 0);
  EXPECT_EQ(value(), 5);
  ask(FrameType::kPush, kAnna);
  transport_.take();
  EXPECT_EQ(set(seq, {ScanKind::kState, {9, 7}, {1, 5}}).header.flags & kFlagError, 0);  // its answer was lost
  EXPECT_EQ(value(), 6);

  EXPECT_THAT(text(set(++seq_[kAnna], {ScanKind::kState, {7}, {1, 2}})), HasSubstr("need 1 floats, not 2"));
  EXPECT_THAT(text(set(++seq_[kAnna], {ScanKind::kAll, {7, 9, 7}, {1, 2, 3}})), HasSubstr("key 7 stands there twice"));
  EXPECT_THAT(text(set(++seq_[kAnna], {ScanKind::kAll, {9, 7}, {1, NAN}})), HasSubstr("the row of key 7 has nan"));
  EXPECT_EQ(value(), 6);
}

TEST_F(ShardOwnerTest, AStatusHasTheHottestKeysAndTheMetricsHowManyThereAre) {
  run();
  for (int i = 0; i < 5000; ++i) ask(FrameType::kPush, kAnna);
  EXPECT_THAT(owner_->status_json(), HasSubstr("\"hot_keys\":[[\"7\","));
  EXPECT_EQ(metrics_.total("pscloud_keys"), 1);
}

TEST_F(ShardOwnerTest, AStatusNamesWhomRequestsWaitFor) {
  run(Consistency::bsp());
  ask(FrameType::kClock, kAnna, {}, 1);
  ask(FrameType::kPull, kAnna);
  EXPECT_THAT(owner_->status_json(), HasSubstr("\"waiting_for\":[\"worker 1\"]"));
}

}  // namespace
}  // namespace pscloud

#include "engine/worker/channel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/worker/channel_testing.h"

namespace pscloud {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<uint64_t> numbers(const std::vector<Frame>& frames) {
  std::vector<uint64_t> list;
  for (const Frame& frame : frames) list.push_back(frame.header.seq);
  return list;
}

TEST_F(ChannelTest, NothingIsSentBeforeTheOwnerKnowsUs) {
  push();
  channel_->start();
  channel_->on_open(transport_.last_lane);
  const auto sent = transport_.take();
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].header.type, FrameType::kSync);
  EXPECT_EQ(sent[0].header.extra, 77u);  // the owner that is meant
}

TEST_F(ChannelTest, RequestsAreNumberedInOrder) {
  open();
  push();
  pull();
  push();
  EXPECT_THAT(numbers(transport_.take()), ElementsAre(1, 2, 3));
}

TEST_F(ChannelTest, CreditForRequestsIsNotExceeded) {
  open({2, 1 << 20});
  for (int i = 0; i < 4; ++i) push();
  EXPECT_THAT(numbers(transport_.take()), ElementsAre(1, 2));
  reply(1, {2, 1 << 20});
  EXPECT_THAT(numbers(transport_.take()), ElementsAre(3));
}

TEST_F(ChannelTest, CreditForBytesIsNotExceeded) {
  open({100, 1000});
  for (int i = 0; i < 4; ++i) push({1, 2, 3});
  const auto sent = transport_.take();
  EXPECT_GE(sent.size(), 1u);
  EXPECT_LT(sent.size(), 4u);
  EXPECT_LE(channel_->unanswered_bytes(), 1000u);
}

TEST_F(ChannelTest, OneRequestIsSentHoweverSmallTheCredit) {
  open({0, 0});
  push();
  push();
  EXPECT_THAT(numbers(transport_.take()), ElementsAre(1));
}

TEST_F(ChannelTest, TellsTheOwnerWhatHasBeenAnswered) {
  open();
  push();
  push();
  reply(1);
  transport_.take();
  push();
  EXPECT_EQ(transport_.take()[0].header.ack, 2u);
}

TEST_F(ChannelTest, AnAnswerEndsItsRequest) {
  open();
  const auto pushed = push();
  const auto pulled = pull({1, 2});
  reply_values(2, {3, 4});
  EXPECT_FALSE(*pushed);
  ASSERT_TRUE(*pulled && **pulled);
  EXPECT_THAT(std::vector<float>((**pulled)->values.begin(), (**pulled)->values.end()), ElementsAre(3, 4));
  reply(1);
  EXPECT_TRUE(*pushed && **pushed);
  EXPECT_TRUE(channel_->idle());
}

TEST_F(ChannelTest, AnErrorNamesTheServer) {
  open();
  const auto pushed = push();
  Frame frame;
  frame.header.type = FrameType::kReply;
  frame.header.flags = kFlagError;
  frame.header.session = kChannelSession;
  frame.header.seq = 1;
  frame.payload = encode(ErrorMessage{Code::kNotFound, "no table"});
  channel_->on_frame(frame);
  ASSERT_TRUE(*pushed && !**pushed);
  EXPECT_EQ((**pushed).error().code, Code::kNotFound);
  EXPECT_EQ((**pushed).error().message, "server 0: no table");
}

TEST_F(ChannelTest, ARepeatedAnswerIsIgnored) {
  open();
  push();
  const auto second = push();
  reply(1);
  reply(1);
  EXPECT_FALSE(*second);
}

TEST_F(ChannelTest, AnAnswerToAnotherSessionIsIgnored) {
  open();
  const auto pushed = push();
  Frame frame;
  frame.header.type = FrameType::kReply;
  frame.header.session = kChannelSession + 1;
  frame.header.seq = 1;
  channel_->on_frame(frame);
  EXPECT_FALSE(*pushed);
}

TEST_F(ChannelTest, AnAnswerWithOtherRowsThanAskedForIsNoAnswer) {
  open();
  const auto pulled = pull({1, 2});
  reply_values(1, {3});
  EXPECT_FALSE(*pulled);
  reply_values(1, {3, 4});
  EXPECT_TRUE(*pulled && **pulled);
}

TEST_F(ChannelTest, AListTheOwnerForgotIsSentAgain) {
  spec_.push_filters = {{FilterKind::kKeyCaching}};
  open();
  push({1, 2, 3});
  push({1, 2, 3});
  auto sent = transport_.take();
  ASSERT_EQ(sent.size(), 2u);
  EXPECT_GT(sent[0].size(), sent[1].size());  // the second goes by its signature
  give(FrameType::kKeysUnknown, 2);
  sent = transport_.take();
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].header.seq, 2u);
  KeyCache cache(1 << 20);
  const auto decoded = decode_payload(sent[0], 3, 1, true, true, {&random_, &cache});
  ASSERT_TRUE(decoded) << decoded.error().message;
  EXPECT_THAT(decoded->keys, ElementsAre(1, 2, 3));
}

TEST_F(ChannelTest, ListsThatMustBeSentAgainWereWithinTheCredit) {
  spec_.push_filters = {{FilterKind::kKeyCaching}};
  std::vector<Key> keys(1000);
  for (size_t i = 0; i < keys.size(); ++i) keys[i] = i;
  const Credit credit{100, 40000};
  open(credit);
  for (int i = 0; i < 20; ++i) push(keys);
  uint64_t bytes = 0;
  for (const Frame& frame : transport_.take()) {
    if (frame.header.seq > 1) give(FrameType::kKeysUnknown, frame.header.seq);
    if (frame.header.seq == 1) bytes = frame.size();
  }
  for (const Frame& frame : transport_.take()) bytes += frame.size();
  EXPECT_LE(bytes, credit.bytes);
}

TEST_F(ChannelTest, AfterASilenceItAsksWhatBecameOfItsRequests) {
  open();
  push();
  transport_.take();
  pass(Timing{}.retry);
  const auto sent = transport_.take();
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].header.type, FrameType::kSync);
}

TEST_F(ChannelTest, OfAPushThatArrivedOnlyTheOutcomeIsAskedForAndAPullIsDoneAgain) {
  open();
  push({1});
  pull({2});
  push({3});
  transport_.take();
  pass(Timing{}.retry);
  sync_reply(2);
  const auto sent = transport_.take();
  ASSERT_THAT(numbers(sent), ElementsAre(1, 2, 3));
  EXPECT_TRUE(sent[0].header.flags & kFlagOutcomeOnly);
  EXPECT_EQ(sent[0].payload, nullptr);
  EXPECT_FALSE(sent[1].header.flags & kFlagOutcomeOnly);
  EXPECT_NE(sent[1].payload, nullptr);
  EXPECT_FALSE(sent[2].header.flags & kFlagOutcomeOnly);  // it never arrived
  EXPECT_NE(sent[2].payload, nullptr);
}

TEST_F(ChannelTest, WhatWasSentAfterTheQuestionIsNotSentAgain) {
  open();
  push({1});
  transport_.take();
  pass(Timing{}.retry);
  push({2});
  sync_reply(0);
  EXPECT_THAT(numbers(transport_.take()), ElementsAre(1));
  pass(Timing{}.retry * 2);  // it was lost after all
  sync_reply(1);
  EXPECT_THAT(numbers(transport_.take()), ElementsAre(1, 2));
}

TEST_F(ChannelTest, WhatWaitsAtTheOwnerIsNotSentAgain) {
  open();
  pull();
  transport_.take();
  pass(Timing{}.retry);
  sync_reply(1, {1});
  EXPECT_THAT(transport_.take(), IsEmpty());
}

TEST_F(ChannelTest, AnAnswerToAnOlderQuestionIsIgnored) {
  open();
  push();
  transport_.take();
  pass(Timing{}.retry);
  const uint64_t first = transport_.take()[0].header.seq;
  pass(Timing{}.retry * 2);
  give(FrameType::kSyncReply, first, encode(SyncReplyMessage{0, 0, Credit{}.packed(), {}}));
  const auto sent = transport_.take();
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].header.type, FrameType::kSync);  // only the second question
}

TEST_F(ChannelTest, AClockWaitsForThePullsBeforeIt) {
  open();
  pull();
  tick();
  push();
  EXPECT_THAT(numbers(transport_.take()), ElementsAre(1));
  reply_values(1, {0});
  EXPECT_THAT(numbers(transport_.take()), ElementsAre(2, 3));
}

TEST_F(ChannelTest, AClockDoesNotWaitForPushes) {
  open();
  push();
  tick();
  EXPECT_THAT(numbers(transport_.take()), ElementsAre(1, 2));
}

TEST_F(ChannelTest, AfterACutItConnectsAgainAndAsksFirst) {
  open();
  push();
  transport_.take();
  channel_->on_close(unavailable("cut"));
  EXPECT_FALSE(channel_->owns(transport_.last_lane));
  EXPECT_THAT(channel_->waiting_for(), HasSubstr("cut"));
  clock_.advance_to(channel_->next_wake());
  channel_->on_wake();
  ASSERT_EQ(transport_.connected.size(), 2u);
  channel_->on_open(transport_.last_lane);
  sync_reply(0);
  EXPECT_THAT(numbers(transport_.take()), ElementsAre(1));
}

TEST_F(ChannelTest, AnOwnerThatDoesNotAnswerIsGivenUpAndTriedAnew) {
  channel_->start();
  const LaneId silent = transport_.last_lane;
  channel_->on_open(silent);
  pass(Timing{}.death);
  EXPECT_TRUE(transport_.closed.contains(silent));
  clock_.advance_to(channel_->next_wake());
  channel_->on_wake();
  EXPECT_NE(transport_.last_lane, silent);
}

TEST_F(ChannelTest, AnOwnerThatAnswersSlowlyIsNotGivenUp) {
  open();
  for (int i = 0; i < 20; ++i) push();
  const LaneId lane = transport_.last_lane;
  for (uint64_t seq = 1; seq <= 20; ++seq) {
    pass(Timing{}.death / 2);
    reply(seq);
  }
  EXPECT_FALSE(transport_.closed.contains(lane));
  EXPECT_TRUE(channel_->idle());
}

TEST_F(ChannelTest, SaysForWhomARequestWaits) {
  open();
  pull();
  EXPECT_EQ(channel_->waiting_for(), "server 0 at there:1");
  give(FrameType::kWaiting, 1, encode(TextMessage{"worker 1 to finish clock 3"}));
  EXPECT_EQ(channel_->waiting_for(), "worker 1 to finish clock 3 (server 0 waits for it)");
}

TEST_F(ChannelTest, AFailureEndsWhatIsThereAndWhatComes) {
  open({1, 1 << 20});
  const auto sent = push();
  const auto queued = push();
  channel_->fail(unavailable("over"));
  const auto later = push();
  for (const auto& outcome : {sent, queued, later}) {
    ASSERT_TRUE(*outcome && !**outcome);
    EXPECT_EQ((**outcome).error().message, "over");
  }
  EXPECT_EQ(channel_->next_wake(), Time::never());
}

TEST_F(ChannelTest, AValueThatNoFilterCarriesEndsItsRequestAndTheNextOneGoes) {
  spec_.push_filters = {{FilterKind::kFloat16}};
  open();
  Part bad = part(FrameType::kPush, {1});
  bad.values = {1e30f};
  const auto refused = submit(std::move(bad));
  ASSERT_TRUE(*refused && !**refused);
  push();
  EXPECT_THAT(numbers(transport_.take()), ElementsAre(1));
}

TEST_F(ChannelTest, ACallbackMaySubmitTheNext) {
  spec_.push_filters = {{FilterKind::kFloat16}};
  Part bad = part(FrameType::kPush, {1});
  bad.values = {1e30f};
  Part next = part(FrameType::kPush, {2});
  next.done = [](const Result<Part::Answer>&) {};
  bad.done = [this, &next](const Result<Part::Answer>&) { channel_->submit(std::move(next)); };
  channel_->submit(std::move(bad));
  push({3});
  open();  // all three are pumped at once, the first ends inside
  EXPECT_THAT(numbers(transport_.take()), ElementsAre(1, 2));
}

TEST_F(ChannelTest, ACallbackMayEndEverything) {
  open();
  Part first = part(FrameType::kPush, {1});
  first.done = [this](const Result<Part::Answer>&) { channel_->fail(unavailable("over")); };
  channel_->submit(std::move(first));
  const auto second = push();
  reply(1);
  ASSERT_TRUE(*second);
  EXPECT_FALSE(**second);
}

TEST_F(ChannelTest, CountsBytesBeforeAndAfterFilters) {
  spec_.push_filters = {{FilterKind::kKeyCaching}, {FilterKind::kFloat16}};
  std::vector<Key> keys(1000);
  for (size_t i = 0; i < keys.size(); ++i) keys[i] = i;
  open();
  push(keys);
  push(keys);
  const Traffic::Bytes pushed = Traffic(metrics_, spec_.name).push;
  const uint64_t plain = pushed.plain.value();
  const uint64_t sent = pushed.wire.value();
  EXPECT_EQ(plain, 2 * keys.size() * 12);
  EXPECT_GE(sent, keys.size() * (8 + 2 + 2));  // the list once, two bytes for each value
  EXPECT_LE(sent, keys.size() * (8 + 2 + 2) + 200);
}

TEST_F(ChannelTest, KnowsThatItIsFenced) {
  open();
  give(FrameType::kFenced, 1, encode(TextMessage{"worker 0 was declared dead"}));
  EXPECT_EQ(channel_->fenced(), "worker 0 was declared dead");
}

}  // namespace
}  // namespace pscloud

// Which parts go first.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>

#include "engine/worker/channel_testing.h"

namespace pscloud {
namespace {

using testing::ElementsAre;

TEST_F(ChannelTest, ALargePartLetsSmallOnesOfOtherTablesGoFirst) {
  Channel::Options some = options();
  some.large_bytes = 1000;
  channel_.emplace(some, transport_, clock_, random_, metrics_);
  open({.requests = 1, .bytes = 1 << 20});
  const auto of_table = [&](TableId table, FrameType type, size_t keys) {
    std::vector<Key> list(keys);
    for (size_t i = 0; i < keys; ++i) list[i] = i;
    Part one = part(type, std::move(list));
    one.table = table;
    return one;
  };
  for (int i = 0; i < 3; ++i) submit(of_table(1, FrameType::kPush, 1000));  // the first is sent at once
  submit(of_table(1, FrameType::kPush, 10));                                // the rest of the same tensor
  submit(of_table(2, FrameType::kPull, 10));
  submit(of_table(3, FrameType::kPull, 10));
  submit(of_table(2, FrameType::kPush, 11));
  submit(of_table(1, FrameType::kPull, 12));
  tick();
  submit(of_table(4, FrameType::kPull, 10));
  std::vector<std::pair<TableId, uint32_t>> seen;
  for (uint64_t seq = 1; seq <= 10; ++seq) {
    for (const Frame& frame : transport_.take()) seen.emplace_back(frame.header.table, frame.header.count);
    Frame frame;
    frame.header.type = FrameType::kReply;
    frame.header.flags = kFlagError;  // no values
    frame.header.session = kChannelSession;
    frame.header.seq = seq;
    frame.header.extra = Credit{.requests = 1, .bytes = 1 << 20}.packed();
    frame.payload = encode(ErrorMessage{Code::kInvalid, "no"});
    channel_->on_frame(frame);
  }
  using Pair = std::pair<TableId, uint32_t>;
  EXPECT_THAT(seen, ElementsAre(Pair{1, 1000}, Pair{2, 10}, Pair{3, 10}, Pair{2, 11}, Pair{1, 1000}, Pair{1, 1000},
                                Pair{1, 10}, Pair{1, 12}, Pair{0, 0}, Pair{4, 10}));
}

TEST_F(ChannelTest, SmallValuesAreCopiedAtOnceLargeOnesWhenNoOtherWaits) {
  open({.requests = 1, .bytes = 1 << 20});
  for (int i = 0; i < 2; ++i) push(std::vector<Key>(100000, 1));  // the first is sent at once
  push();
  std::atomic<bool> small = false;
  std::atomic<bool> large = false;
  const auto wanted = std::make_shared<const bool>(true);
  channel_->tell_when_to_copy(1000, wanted, &small);
  channel_->tell_when_to_copy(1 << 20, wanted, &large);
  EXPECT_TRUE(small);
  EXPECT_FALSE(large);
  reply(1, {.requests = 1, .bytes = 1 << 20});
  EXPECT_TRUE(large) << "though a small one waits";
}

TEST_F(ChannelTest, WhatIsGivenUpIsNotSentAndNobodyWaitsToCopyForIt) {
  open({.requests = 1, .bytes = 1 << 20});
  const auto wanted = std::make_shared<bool>(true);
  const auto of_request = [&](Part part) {
    part.wanted = wanted;
    return submit(std::move(part));
  };
  for (int i = 0; i < 3; ++i) of_request(part(FrameType::kPush, std::vector<Key>(100000, 1)));  // one is sent
  Part clock;
  clock.type = FrameType::kClock;
  of_request(std::move(clock));
  push({1, 2});
  std::atomic<bool> given_up = false;
  std::atomic<bool> other = false;
  std::atomic<bool> late = false;
  channel_->tell_when_to_copy(1 << 20, wanted, &given_up);
  channel_->tell_when_to_copy(1 << 20, std::make_shared<const bool>(true), &other);
  EXPECT_FALSE(given_up || other);
  *wanted = false;
  channel_->vacate();
  EXPECT_TRUE(given_up);
  EXPECT_TRUE(other) << "no large part waits any more";
  channel_->tell_when_to_copy(1 << 20, wanted, &late);
  EXPECT_TRUE(late);
  std::vector<std::pair<FrameType, uint32_t>> seen;
  for (uint64_t seq = 1; seq <= 3; ++seq) {
    for (const Frame& frame : transport_.take()) seen.emplace_back(frame.header.type, frame.header.count);
    reply(seq, {.requests = 1, .bytes = 1 << 20});
  }
  using Pair = std::pair<FrameType, uint32_t>;
  EXPECT_THAT(seen, ElementsAre(Pair{FrameType::kPush, 100000}, Pair{FrameType::kClock, 0}, Pair{FrameType::kPush, 2}));
}

TEST_F(ChannelTest, WhatStoodBehindSomethingGivenUpGoesOn) {
  open();
  const auto wanted = std::make_shared<bool>(true);
  for (int i = 0; i < 3; ++i) {
    Part large = part(FrameType::kPush, std::vector<Key>(300000, 1));  // more than one is too much for the network
    large.wanted = wanted;
    submit(std::move(large));
  }
  transport_.take();
  push({1, 2});
  EXPECT_TRUE(transport_.take().empty());
  *wanted = false;
  channel_->vacate();
  const auto sent = transport_.take();
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].header.count, 2u);
}

TEST_F(ChannelTest, ALargePartHasItsTurnHoweverManySmallOnesCome) {
  open({.requests = 1, .bytes = 1 << 20});
  push(std::vector<Key>(100000, 1));
  push(std::vector<Key>(100000, 1));
  for (int i = 0; i < 1000; ++i) {
    Part small = part(FrameType::kPush, {1});
    small.table = 10;
    submit(std::move(small));
  }
  std::vector<uint32_t> counts;
  for (uint64_t seq = 1; seq <= 100; ++seq) {
    for (const Frame& frame : transport_.take()) counts.push_back(frame.header.count);
    reply(seq, {.requests = 1, .bytes = 1 << 20});
  }
  const auto large = std::ranges::find(counts.begin() + 1, counts.end(), 100000u);
  EXPECT_EQ(large - counts.begin(), 1 + 64);
}

}  // namespace
}  // namespace pscloud

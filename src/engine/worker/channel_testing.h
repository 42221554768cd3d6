#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "engine/worker/channel.h"
#include "net/recording_transport.h"

namespace pscloud {

inline constexpr uint64_t kChannelSession = 5;

// The test plays the owner.
class ChannelTest : public testing::Test {
 protected:
  using Outcome = std::optional<Result<Part::Answer>>;

  ChannelTest() { channel_.emplace(options(), transport_, clock_, random_, metrics_); }

  static Channel::Options options() {
    Channel::Options options;
    options.owner.role = Role::kServer;
    options.owner.session = 77;
    options.owner.address = "there:1";
    options.session = kChannelSession;
    return options;
  }
  Part part(FrameType type, std::vector<Key> keys) {
    Part part;
    part.type = type;
    part.spec = std::make_shared<const TableSpec>(spec_);
    part.table = 9;
    part.count = static_cast<uint32_t>(keys.size());
    if (type != FrameType::kPull) part.values = Floats(std::vector<float>(keys.size(), 1.0f));
    part.keys = std::move(keys);
    return part;
  }
  std::shared_ptr<Outcome> submit(Part part) {
    auto outcome = std::make_shared<Outcome>();
    part.done = [outcome](Result<Part::Answer> answer) { *outcome = std::move(answer); };
    channel_->submit(std::move(part));
    return outcome;
  }
  std::shared_ptr<Outcome> push(std::vector<Key> keys = {1}) { return submit(part(FrameType::kPush, std::move(keys))); }
  std::shared_ptr<Outcome> pull(std::vector<Key> keys = {1}) { return submit(part(FrameType::kPull, std::move(keys))); }
  std::shared_ptr<Outcome> tick() {
    Part clock;
    clock.type = FrameType::kClock;
    clock.clock = 1;
    return submit(std::move(clock));
  }

  // Connected, and the owner has answered the first sync.
  void open(Credit credit = {}) {
    channel_->start();
    channel_->on_open(transport_.last_lane);
    sync_reply(0, {}, credit);
  }
  // Answers the last sync that was sent.
  void sync_reply(uint64_t accepted, std::vector<uint64_t> waiting = {}, Credit credit = {}) {
    uint64_t number = 0;
    for (const Frame& frame : transport_.take()) {
      if (frame.header.type == FrameType::kSync) number = frame.header.seq;
    }
    ASSERT_NE(number, 0u) << "no sync was sent";
    give(FrameType::kSyncReply, number, encode(SyncReplyMessage{accepted, 0, credit.packed(), std::move(waiting)}));
  }
  void give(FrameType type, uint64_t seq, SharedBuffer payload = nullptr) {
    Frame frame;
    frame.header.type = type;
    frame.header.session = kChannelSession;
    frame.header.seq = seq;
    frame.payload = std::move(payload);
    channel_->on_frame(frame);
  }
  void reply(uint64_t seq, Credit credit = {}) {
    Frame frame;
    frame.header.type = FrameType::kReply;
    frame.header.session = kChannelSession;
    frame.header.seq = seq;
    frame.header.extra = credit.packed();
    channel_->on_frame(frame);
  }
  void reply_values(uint64_t seq, std::vector<float> values) {
    Frame frame;
    frame.header.type = FrameType::kReply;
    frame.header.session = kChannelSession;
    frame.header.seq = seq;
    frame.header.count = static_cast<uint32_t>(values.size());
    frame.header.extra = Credit{}.packed();
    encode_payload({}, {}, Floats(values), values.size(), {&random_, nullptr})->put_in(frame);
    channel_->on_frame(frame);
  }
  void pass(Duration time) {
    clock_.advance(time);
    channel_->on_wake();
  }

  TableSpec spec_;
  ManualClock clock_;
  Random random_{1};
  Metrics metrics_;
  RecordingTransport transport_;
  std::optional<Channel> channel_;
};

}  // namespace pscloud

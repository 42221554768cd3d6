// What holds for every transport: inproc, tcp, tls and shared memory, without and with TLS, run the same tests.

#include "net/transport.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.h"
#include "net/inproc.h"
#include "net/tcp.h"
#include "net/test_certificates.h"
#include "net/test_node.h"

namespace pscloud {
namespace {

using testing::HasSubstr;

Frame make_frame(uint64_t seq, size_t payload_bytes) {
  Frame frame{.header = {.type = FrameType::kPush, .session = 3, .seq = seq}, .payload = nullptr};
  if (payload_bytes > 0) {
    Buffer payload(payload_bytes);
    Random random(seq + payload_bytes);
    for (size_t i = 0; i < payload_bytes; i += 8) {
      const uint64_t word = random.next();
      std::memcpy(payload.data() + i, &word, std::min<size_t>(8, payload_bytes - i));
    }
    frame.payload = std::make_shared<const Buffer>(std::move(payload));
  }
  return frame;
}

// Equal, but for what the transport fills in.
void expect_equal(const Frame& got, const Frame& sent) {
  FrameHeader expected = sent.header;
  expected.payload_bytes = static_cast<uint32_t>(sent.bytes().size());
  EXPECT_EQ(got.header, expected) << "seq " << sent.header.seq;
  ASSERT_EQ(got.bytes().size(), sent.bytes().size()) << "seq " << sent.header.seq;
  if (sent.bytes().empty()) return;
  EXPECT_EQ(std::memcmp(got.bytes().data(), sent.bytes().data(), sent.bytes().size()), 0) << "seq " << sent.header.seq;
}

class TransportTest : public testing::TestWithParam<std::string> {
 protected:
  std::unique_ptr<LoopTransport> make(Role role) {
    if (GetParam() == "inproc") return make_inproc_transport(network_, system_clock);
    if (GetParam() == "tcp" || GetParam() == "shm") return make_tcp_transport({.insecure = true}, system_clock).value();
    if (!ca_) ca_ = std::make_unique<TestCa>();
    const char name = role_name(role)[0];
    // A new key every few frames: the tests see whether any are lost over it.
    return make_tcp_transport({.tls_dir = ca_->issue(fmt::format("pscloud://test/{}/{}0", role_name(role), name)),
                               .tls_rekey_bytes = 5 << 20},
                              system_clock)
        .value();
  }
  std::string any_address() const {
    if (GetParam().starts_with("shm")) return "unix:";
    return GetParam() == "inproc" ? "inproc:" : "127.0.0.1:0";
  }

  std::shared_ptr<LocalNetwork> network_ = make_local_network();
  std::unique_ptr<TestCa> ca_;
};

TEST_P(TransportTest, FramesOfAnySizeArriveEqualAndInOrderBothWays) {
  TestNode server(make(Role::kServer), {.echo = true});
  TestNode worker(make(Role::kWorker));
  const LaneId lane = worker.connect(server.listen(any_address()).value());
  ASSERT_TRUE(worker.wait_open(lane));

  std::vector<Frame> sent;
  for (const size_t size :
       {0, 1, 63, 64, 65, 1000, 0, 16383, 16384, 16385, 65536, 200000, 262144, 1 << 20, 7, 3 << 20, 16 << 20, 0, 5}) {
    sent.push_back(make_frame(sent.size() + 1, size));
  }
  for (int i = 0; i < 2000; ++i) sent.push_back(make_frame(sent.size() + 1, i % 300));
  for (const Frame& frame : sent) worker.send(lane, frame);

  const auto back = worker.wait_frames(lane, sent.size());
  const auto there = server.wait_frames(server.wait_lane(0), sent.size());
  ASSERT_EQ(there.size(), sent.size());
  ASSERT_EQ(back.size(), sent.size());
  for (size_t i = 0; i < sent.size(); ++i) {
    expect_equal(there[i], sent[i]);
    expect_equal(back[i], sent[i]);
  }
}

TEST_P(TransportTest, EachSideIsToldWhoTheOtherIs) {
  TestNode server(make(Role::kServer));
  TestNode worker(make(Role::kWorker));
  const std::string address = server.listen(any_address()).value();
  EXPECT_THAT(address, testing::Not(testing::EndsWith(":0")));
  const LaneId lane = worker.connect(address);
  ASSERT_TRUE(worker.wait_open(lane));
  const LaneId accepted = server.wait_lane(0);
  EXPECT_EQ(worker.seen().opened[lane].address, address);
  EXPECT_THAT(server.seen().opened[accepted].address,
              testing::AnyOf(testing::StartsWith("inproc:"), testing::StartsWith("127."), "this machine"));
  const bool proven = GetParam().ends_with("tls");
  EXPECT_EQ(worker.seen().opened[lane].role, proven ? std::optional(Role::kServer) : std::nullopt);
  EXPECT_EQ(server.seen().opened[accepted].role, proven ? std::optional(Role::kWorker) : std::nullopt);
  EXPECT_EQ(server.seen().opened[accepted].name, proven ? "w0" : "");
  EXPECT_TRUE(GetParam().starts_with("shm") || server.transport().name() == GetParam());
}

TEST_P(TransportTest, ManyLanesCarryEachItsOwnFrames) {
  constexpr size_t kLanes = 100;
  TestNode server(make(Role::kServer), {.echo = true});
  TestNode worker(make(Role::kWorker));
  const std::string address = server.listen(any_address()).value();
  std::vector<LaneId> lanes;
  for (size_t i = 0; i < kLanes; ++i) lanes.push_back(worker.connect(address));
  // Sent at once: what is queued before a lane opens goes out when it does.
  for (size_t i = 0; i < kLanes; ++i) {
    for (size_t j = 0; j < 5; ++j) worker.send(lanes[i], make_frame(i * 10 + j, i * j * 100));
  }
  for (size_t i = 0; i < kLanes; ++i) {
    const auto frames = worker.wait_frames(lanes[i], 5);
    ASSERT_EQ(frames.size(), 5u) << "lane " << i;
    for (size_t j = 0; j < 5; ++j) expect_equal(frames[j], make_frame(i * 10 + j, i * j * 100));
  }
}

TEST_P(TransportTest, FramesQueuedBeforeCloseStillArriveThenTheLaneCloses) {
  TestNode server(make(Role::kServer));
  TestNode worker(make(Role::kWorker));
  const LaneId lane = worker.connect(server.listen(any_address()).value());
  ASSERT_TRUE(worker.wait_open(lane));
  const LaneId accepted = server.wait_lane(0);
  worker.call([&](LoopTransport& transport) {
    for (uint64_t i = 0; i < 4; ++i) transport.send(lane, make_frame(i, 2 << 20));
    transport.close(lane);
    transport.send(lane, make_frame(9, 1));  // too late
  });
  EXPECT_EQ(server.wait_closed(accepted).code, Code::kUnavailable);
  EXPECT_EQ(server.wait_frames(accepted, 4).size(), 4u);
  EXPECT_FALSE(worker.seen().closed.contains(lane)) << "who closes is not told";
}

TEST_P(TransportTest, WhatWasSentBeforeStopStillArrives) {
  TestNode server(make(Role::kServer));
  TestNode worker(make(Role::kWorker));
  const LaneId lane = worker.connect(server.listen(any_address()).value());
  ASSERT_TRUE(worker.wait_open(lane));
  const LaneId accepted = server.wait_lane(0);
  for (uint64_t i = 0; i < 4; ++i) worker.send(lane, make_frame(i, 1 << 20));
  worker.stop();
  EXPECT_EQ(server.wait_closed(accepted).code, Code::kUnavailable);
  EXPECT_EQ(server.wait_frames(accepted, 4).size(), 4u);
}

TEST_P(TransportTest, ATransportThatEndsClosesItsLanesAtThePeers) {
  auto server = std::make_unique<TestNode>(make(Role::kServer));
  TestNode worker(make(Role::kWorker));
  const std::string address = server->listen(any_address()).value();
  const LaneId first = worker.connect(address);
  const LaneId second = worker.connect(address);
  ASSERT_TRUE(worker.wait_open(first) && worker.wait_open(second));
  server.reset();
  EXPECT_EQ(worker.wait_closed(first).code, Code::kUnavailable);
  EXPECT_EQ(worker.wait_closed(second).code, Code::kUnavailable);

  const LaneId third = worker.connect(address);
  const Error why = worker.wait_closed(third);
  EXPECT_EQ(why.code, Code::kUnavailable);
  EXPECT_THAT(why.message, HasSubstr(address));
}

TEST_P(TransportTest, ALaneThatIsClosedWhileItOpensTellsNobodyHere) {
  TestNode server(make(Role::kServer));
  TestNode worker(make(Role::kWorker));
  const std::string address = server.listen(any_address()).value();
  LaneId given_up = 0;
  worker.call([&](LoopTransport& transport) {
    given_up = transport.connect(address, Role::kServer);
    transport.close(given_up);
    transport.close(given_up);
  });
  const LaneId lane = worker.connect(address);
  ASSERT_TRUE(worker.wait_open(lane));
  worker.send(lane, make_frame(1, 1));
  EXPECT_FALSE(worker.seen().opened.contains(given_up));
  EXPECT_FALSE(worker.seen().closed.contains(given_up));
}

TEST_P(TransportTest, AStrangerMaySendOnlySmallPayloads) {
  TestNode server(make(Role::kServer), {.trust = false});
  TestNode worker(make(Role::kWorker));
  const std::string address = server.listen(any_address()).value();
  const LaneId small = worker.connect(address);
  ASSERT_TRUE(worker.wait_open(small));
  const LaneId small_there = server.wait_lane(0);
  worker.send(small, make_frame(1, kPayloadBytesStranger));
  EXPECT_EQ(server.wait_frames(small_there, 1).size(), 1u);

  worker.send(small, make_frame(2, kPayloadBytesStranger + 1));
  const Error why = server.wait_closed(small_there);
  EXPECT_EQ(why.code, Code::kCorrupt);
  EXPECT_THAT(why.message, HasSubstr("payload of 262145 bytes"));
  worker.wait_closed(small);
  EXPECT_TRUE(worker.seen().closed.contains(small));
}

TEST_P(TransportTest, UnsentBytesFallToZeroWhenThePeerHasTakenThem) {
  TestNode server(make(Role::kServer));
  TestNode worker(make(Role::kWorker));
  const LaneId lane = worker.connect(server.listen(any_address()).value());
  ASSERT_TRUE(worker.wait_open(lane));
  const auto queued = worker.call([&](LoopTransport& transport) {
    transport.send(lane, make_frame(1, 8 << 20));
    transport.send(lane, make_frame(2, 8 << 20));
    return transport.unsent_bytes(lane);
  });
  EXPECT_LE(queued, (16u << 20) + 2 * kFrameHeaderBytes);
  ASSERT_EQ(server.wait_frames(server.wait_lane(0), 2).size(), 2u);
  const auto unsent = [&] {
    return worker.call([&](LoopTransport& transport) { return transport.unsent_bytes(lane); });
  };
  // The sender's loop may need another turn to see that all was taken.
  const Time deadline = system_clock.now() + std::chrono::seconds(30);
  while (unsent() > 0 && system_clock.now() < deadline) std::this_thread::yield();
  EXPECT_EQ(unsent(), 0u);
  EXPECT_EQ(worker.call([](LoopTransport& transport) { return transport.unsent_bytes(12345678); }), 0u);
}

TEST_P(TransportTest, BorrowedValuesMayChangeRightAfterTheCall) {
  TestNode server(make(Role::kServer));
  TestNode client(make(Role::kWorker));
  const auto address = server.listen(any_address());
  ASSERT_TRUE(address) << address.error().message;
  const LaneId lane = client.connect(*address);
  ASSERT_TRUE(client.wait_open(lane));
  const LaneId back = server.wait_lane(0);
  client.send(lane, make_frame(1, 8));  // it is no stranger
  ASSERT_EQ(server.wait_frames(back, 1).size(), 1u);

  // Far more than a socket takes at once, from one piece of memory.
  constexpr int kFrames = 40;
  const bool borrows = server.call([&](LoopTransport& transport) {
    if (!transport.borrows(back)) return false;
    std::vector<std::byte> memory((1 << 20) + 100);
    for (int i = 1; i <= kFrames; ++i) {
      std::ranges::fill(memory, static_cast<std::byte>(i));
      Frame frame = make_frame(static_cast<uint64_t>(i), i % 3 == 0 ? 24 : 0);
      frame.values = std::make_shared<const Buffer>(memory, nullptr, Buffer::kBorrowed);
      transport.send(back, std::move(frame));
      std::ranges::fill(memory, std::byte{0xff});
    }
    return true;
  });
  EXPECT_EQ(borrows, GetParam() == "tcp" || GetParam() == "tls");
  if (!borrows) return;
  const auto frames = client.wait_frames(lane, kFrames);
  ASSERT_EQ(frames.size(), size_t{kFrames});
  for (int i = 1; i <= kFrames; ++i) {
    const Bytes values = frames[static_cast<size_t>(i - 1)].bytes().subspan(i % 3 == 0 ? 24 : 0);
    ASSERT_EQ(values.size(), size_t{(1 << 20) + 100});
    ASSERT_TRUE(std::ranges::all_of(values, [&](std::byte b) { return b == static_cast<std::byte>(i); })) << i;
  }
}

TEST_P(TransportTest, WhoSendsFasterThanItReadsGetsEverything) {
  TestNode server(make(Role::kServer), {.echo = true, .keep = false});
  TestNode client(make(Role::kWorker), {.keep = false});
  const auto address = server.listen(any_address());
  ASSERT_TRUE(address) << address.error().message;
  const LaneId lane = client.connect(*address);
  ASSERT_TRUE(client.wait_open(lane));
  constexpr size_t kFrames = 60;
  client.call([&](LoopTransport& transport) {
    for (size_t i = 0; i < kFrames; ++i) transport.send(lane, make_frame(i, 1 << 20));
  });
  EXPECT_TRUE(client.wait([&](const Seen& seen) { return seen.frames_not_kept == kFrames; }));
}

TEST_P(TransportTest, WakesOnceForTheLastTimeAskedFor) {
  TestNode node(make(Role::kServer));
  const Time asked = system_clock.now();
  node.call([&](LoopTransport& transport) {
    transport.wake_at(asked + std::chrono::hours(5));
    transport.wake_at(asked + std::chrono::milliseconds(20));
  });
  ASSERT_TRUE(node.wait([](const Seen& seen) { return seen.wakes > 0; }));
  EXPECT_GE(system_clock.now() - asked, std::chrono::milliseconds(20));
  node.call([&](LoopTransport& transport) { transport.wake_at(Time{0}); });  // the past is now
  ASSERT_TRUE(node.wait([](const Seen& seen) { return seen.wakes > 1; }));
  node.call([&](LoopTransport& transport) {
    transport.wake_at(asked);
    transport.wake_at(Time::never());
  });
  node.call([](LoopTransport&) {});
  EXPECT_EQ(node.seen().wakes, 2);
}

TEST_P(TransportTest, WorkPostedBeforeStopRunsAndAfterStopIsDropped) {
  std::atomic<int> ran{0};
  auto transport = make(Role::kServer);
  auto* const raw = transport.get();
  TestNode node(std::move(transport));
  raw->post([&] { ++ran; });
  node.stop();
  raw->post([&] { ran += 100; });
  node.stop();
  EXPECT_EQ(ran, 1);
}

TEST_P(TransportTest, StopBeforeRunLetsRunReturn) {
  auto transport = make(Role::kServer);
  transport->stop();
  TestNode node(std::move(transport));
  node.stop();
}

TEST_P(TransportTest, AnAddressIsTakenOnce) {
  TestNode first(make(Role::kServer));
  TestNode second(make(Role::kServer));
  const std::string address = first.listen(any_address()).value();
  const auto again = second.listen(address);
  ASSERT_FALSE(again);
  EXPECT_THAT(again.error().message, HasSubstr(address));
}

INSTANTIATE_TEST_SUITE_P(All, TransportTest, testing::Values("inproc", "tcp", "tls", "shm", "shm_tls"),
                         [](const auto& kind) { return kind.param; });

}  // namespace
}  // namespace pscloud

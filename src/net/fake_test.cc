#include "net/fake.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace pscloud {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;

// A host that writes down what it is told.
struct Host final : LaneHandler {
  void on_open(LaneId lane, const Peer&) override { opened.push_back(lane); }
  void on_frame(LaneId, Frame frame) override { frames.push_back(frame.header.seq); }
  void on_close(LaneId lane, const Error&) override { closed.push_back(lane); }
  void on_wake() override { ++wakes; }

  FakeTransport* transport = nullptr;
  std::vector<LaneId> opened;
  std::vector<LaneId> closed;
  std::vector<uint64_t> frames;
  int wakes = 0;
};

// Two hosts; `client_` connects to `server_`.
struct FakePair {
  explicit FakePair(uint64_t seed) : network_(seed, clock_) {
    for (Host* host : {&client_, &server_}) host->transport = &network_.add_host(*host);
    (void)server_.transport->listen("server");
  }

  // Runs until nothing happens for a long time.
  void run() {
    while (network_.step()) {
    }
  }
  void connect() {
    lane_ = client_.transport->connect("server", Role::kServer);
    run();
    ASSERT_THAT(client_.opened, ElementsAre(lane_));
    ASSERT_EQ(server_.opened.size(), 1u);
  }
  void send(uint64_t seq) { send(client_, lane_, seq); }
  static void send(Host& from, LaneId lane, uint64_t seq) {
    Frame frame;
    frame.header.seq = seq;
    from.transport->send(lane, std::move(frame));
  }
  int to_server() const { return server_.transport->host(); }
  int to_client() const { return client_.transport->host(); }

  ManualClock clock_;
  FakeNetwork network_;
  Host client_;
  Host server_;
  LaneId lane_ = 0;
};

class FakeNetworkTest : public testing::Test, protected FakePair {
 protected:
  FakeNetworkTest() : FakePair(1) {}
};

// Faults with some chances set.
template <class Set>
NetworkFaults faults_with(Set set) {
  NetworkFaults faults;
  set(faults);
  return faults;
}

std::vector<uint64_t> numbers(uint64_t last) {
  std::vector<uint64_t> list(last);
  for (uint64_t i = 0; i < last; ++i) list[i] = i + 1;
  return list;
}

TEST_F(FakeNetworkTest, WithoutFaultsFramesArriveOnceAndInOrder) {
  connect();
  for (uint64_t i = 1; i <= 100; ++i) send(i);
  run();
  EXPECT_EQ(server_.frames, numbers(100));
  EXPECT_THAT(network_.fault_counts(), IsEmpty());
}

TEST_F(FakeNetworkTest, NobodyListensThereSoTheLaneIsClosed) {
  const LaneId lane = client_.transport->connect("nowhere", Role::kServer);
  run();
  EXPECT_THAT(client_.closed, ElementsAre(lane));
}

TEST_F(FakeNetworkTest, TimeMovesToEachEvent) {
  connect();
  const Time before = clock_.now();
  client_.transport->wake_at(before + seconds(5));
  run();
  EXPECT_EQ(client_.wakes, 1);
  EXPECT_EQ(clock_.now(), before + seconds(5));
}

TEST_F(FakeNetworkTest, EachWishToWakeReplacesTheOneBefore) {
  const Time start = clock_.now();
  client_.transport->wake_at(start + seconds(1));
  client_.transport->wake_at(start + seconds(5));
  run();
  EXPECT_EQ(client_.wakes, 1);
  EXPECT_EQ(clock_.now(), start + seconds(5));
}

TEST_F(FakeNetworkTest, LostFramesAreCounted) {
  connect();
  network_.set_faults(faults_with([](NetworkFaults& f) { f.lose = 0.5; }));
  for (uint64_t i = 1; i <= 200; ++i) send(i);
  run();
  EXPECT_GT(server_.frames.size(), 50u);
  EXPECT_EQ(server_.frames.size() + network_.fault_counts().at("lost"), 200u);
  EXPECT_TRUE(std::ranges::is_sorted(server_.frames));
}

TEST_F(FakeNetworkTest, RepeatedFramesComeTwice) {
  connect();
  network_.set_faults(faults_with([](NetworkFaults& f) { f.repeat = 1; }));
  send(7);
  run();
  EXPECT_THAT(server_.frames, ElementsAre(7, 7));
}

TEST_F(FakeNetworkTest, ReorderedFramesOvertake) {
  connect();
  network_.set_faults(faults_with([](NetworkFaults& f) { f.reorder = 0.5; }));
  for (uint64_t i = 1; i <= 100; ++i) send(i);
  run();
  EXPECT_FALSE(std::ranges::is_sorted(server_.frames));
  std::ranges::sort(server_.frames);
  EXPECT_EQ(server_.frames, numbers(100));
}

TEST_F(FakeNetworkTest, SlowFramesTakeLongButNotLongerThanTheMost) {
  connect();
  NetworkFaults faults;
  faults.slow = 1;
  network_.set_faults(faults);
  const Time before = clock_.now();
  for (uint64_t i = 1; i <= 100; ++i) send(i);
  run();
  EXPECT_GT(clock_.now() - before, seconds(1));
  EXPECT_LE(clock_.now() - before, faults.slow_max + milliseconds(1));
}

TEST(FakeNetwork, ACutIsToldToBothEndsWhicheverHearsOfItFirst) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    FakePair pair(seed);
    pair.connect();
    pair.network_.set_faults(faults_with([](NetworkFaults& f) { f.cut = 1; }));
    pair.send(1);
    pair.run();
    EXPECT_THAT(pair.client_.closed, ElementsAre(pair.lane_)) << seed;
    EXPECT_THAT(pair.server_.closed, ElementsAre(pair.server_.opened[0])) << seed;
    EXPECT_THAT(pair.server_.frames, IsEmpty()) << seed;
  }
}

TEST_F(FakeNetworkTest, AHalfOpenConnectionIsToldToOneEndOnly) {
  connect();
  network_.set_faults(faults_with([](NetworkFaults& f) {
    f.cut = 1;
    f.half_open = 1;
  }));
  send(1);
  run();
  EXPECT_THAT(client_.closed, ElementsAre(lane_));
  EXPECT_THAT(server_.closed, IsEmpty());
  network_.set_faults({});
  send(server_, server_.opened[0], 2);  // into the void
  run();
  EXPECT_THAT(client_.frames, IsEmpty());
}

TEST_F(FakeNetworkTest, WhatWasSentBeforeACloseStillArrives) {
  connect();
  send(1);
  client_.transport->close(lane_);
  send(2);
  run();
  EXPECT_THAT(server_.frames, ElementsAre(1));
  EXPECT_EQ(server_.closed.size(), 1u);
  EXPECT_THAT(client_.closed, IsEmpty());  // it closed the lane itself
}

TEST_F(FakeNetworkTest, NothingIsReceivedOnALaneThatWasClosed) {
  connect();
  send(server_, server_.opened[0], 1);
  client_.transport->close(lane_);
  run();
  EXPECT_THAT(client_.frames, IsEmpty());
}

TEST_F(FakeNetworkTest, APartitionHasADirection) {
  connect();
  network_.block(to_client(), to_server());
  send(1);
  send(server_, server_.opened[0], 2);
  run();
  EXPECT_THAT(server_.frames, IsEmpty());
  EXPECT_THAT(client_.frames, ElementsAre(2));
  network_.heal();
  send(3);
  run();
  EXPECT_THAT(server_.frames, ElementsAre(3));  // what was lost stays lost
}

TEST_F(FakeNetworkTest, OneOfTwoPartitionsEndsAndTheOtherLasts) {
  connect();
  network_.block(to_client(), to_server());
  network_.block(to_client(), to_server());
  network_.block(to_server(), to_client());
  network_.unblock(to_client(), to_server());
  network_.unblock(to_server(), to_client());
  send(1);
  send(server_, server_.opened[0], 2);
  run();
  EXPECT_THAT(server_.frames, IsEmpty());
  EXPECT_THAT(client_.frames, ElementsAre(2));
  network_.unblock(to_client(), to_server());
  send(3);
  run();
  EXPECT_THAT(server_.frames, ElementsAre(3));
}

TEST_F(FakeNetworkTest, NobodyConnectsThroughAPartition) {
  network_.block(to_client(), to_server());
  client_.transport->connect("server", Role::kServer);
  run();
  EXPECT_THAT(client_.opened, IsEmpty());
  EXPECT_THAT(client_.closed, IsEmpty());  // whoever connects must give up by itself
  EXPECT_THAT(server_.opened, IsEmpty());
}

TEST_F(FakeNetworkTest, APausedHostGetsEverythingAtOnceAndInOrder) {
  connect();
  const Time until = clock_.now() + seconds(3);
  network_.pause(to_server(), until);
  server_.transport->wake_at(clock_.now() + seconds(1));
  for (uint64_t i = 1; i <= 10; ++i) send(i);
  while (clock_.now() < until) {
    ASSERT_TRUE(server_.frames.empty() && server_.wakes == 0);
    ASSERT_TRUE(network_.step());
  }
  run();
  EXPECT_EQ(clock_.now(), until);
  EXPECT_EQ(server_.frames, numbers(10));
  EXPECT_EQ(server_.wakes, 1);
}

TEST_F(FakeNetworkTest, AKilledHostIsMissedByItsPeers) {
  connect();
  network_.kill(to_server(), false);
  send(1);
  run();
  EXPECT_THAT(client_.closed, ElementsAre(lane_));
  EXPECT_THAT(server_.frames, IsEmpty());
}

TEST_F(FakeNetworkTest, APowerCutIsToldToNobody) {
  connect();
  network_.kill(to_server(), true);
  send(1);
  run();
  EXPECT_THAT(client_.closed, IsEmpty());
  EXPECT_THAT(server_.frames, IsEmpty());
}

TEST_F(FakeNetworkTest, AnAddressPassesToTheHostStartedInThePlaceOfADeadOne) {
  network_.kill(to_server(), false);
  LaneId lane = client_.transport->connect("server", Role::kServer);
  run();
  EXPECT_THAT(client_.closed, ElementsAre(lane));
  Host second;
  second.transport = &network_.add_host(second);
  (void)second.transport->listen("server");
  lane = client_.transport->connect("server", Role::kServer);
  run();
  EXPECT_THAT(client_.opened, ElementsAre(lane));
  EXPECT_EQ(second.opened.size(), 1u);
}

TEST_F(FakeNetworkTest, WorkIsDoneAtItsTime) {
  const Time when = clock_.now() + seconds(2);
  Time done;
  network_.at(when, [&] { done = clock_.now(); });
  run();
  EXPECT_EQ(done, when);
  EXPECT_STREQ(network_.last_step().what, "work");
}

// What a run of faults looked like, step by step.
std::string trace(uint64_t seed) {
  ManualClock clock;
  FakeNetwork network(seed, clock);
  Host client;
  Host server;
  for (Host* host : {&client, &server}) host->transport = &network.add_host(*host);
  (void)server.transport->listen("server");
  network.set_faults(faults_with([](NetworkFaults& f) {
    f.lose = 0.1;
    f.repeat = 0.1;
    f.reorder = 0.1;
    f.slow = 0.1;
    f.cut = 0.01;
  }));
  std::string text;
  const auto run = [&] {
    while (network.step()) {
      const FakeNetwork::Step& step = network.last_step();
      text += fmt::format("{} {} {} {} {}\n", step.time.us, step.from, step.to, step.what, step.seq);
    }
  };
  for (int lane = 0; lane < 3; ++lane) client.transport->connect("server", Role::kServer);
  run();
  for (uint64_t i = 1; i <= 50; ++i) {
    for (const LaneId lane : client.opened) {
      Frame frame;
      frame.header.seq = i;
      client.transport->send(lane, std::move(frame));
    }
  }
  run();
  return text;
}

TEST(FakeNetwork, TheSameSeedGivesTheSameSteps) {
  for (uint64_t seed = 1; seed <= 5; ++seed) EXPECT_EQ(trace(seed), trace(seed));
  EXPECT_NE(trace(1), trace(2));
}

}  // namespace
}  // namespace pscloud

#include "net/inproc.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "net/test_node.h"

namespace pscloud {
namespace {

TEST(Inproc, FramesMoveWithoutCopyingTheirBytes) {
  const auto network = make_local_network();
  TestNode server(make_inproc_transport(network, system_clock));
  TestNode worker(make_inproc_transport(network, system_clock));
  const LaneId lane = worker.connect(server.listen("inproc:s").value());
  const auto payload = std::make_shared<const Buffer>(Buffer::copy_of(bytes_of("parameters")));
  worker.send(lane, {.header = {}, .payload = payload});
  const auto frames = server.wait_frames(server.wait_lane(0), 1);
  ASSERT_EQ(frames.size(), 1u);
  EXPECT_EQ(frames[0].payload.get(), payload.get());
}

TEST(Inproc, NamesAreGivenOrTaken) {
  const auto network = make_local_network();
  TestNode node(make_inproc_transport(network, system_clock));
  EXPECT_EQ(node.listen("inproc:scheduler").value(), "inproc:scheduler");
  const std::string first = node.listen("inproc:").value();
  const std::string second = node.listen("inproc:0").value();
  EXPECT_THAT(first, testing::StartsWith("inproc:#"));
  EXPECT_NE(first, second);
  EXPECT_EQ(node.listen("127.0.0.1:0").error().code, Code::kInvalid);
}

TEST(Inproc, NetworksDoNotSeeEachOther) {
  TestNode server(make_inproc_transport(make_local_network(), system_clock));
  TestNode worker(make_inproc_transport(make_local_network(), system_clock));
  const Error why = worker.wait_closed(worker.connect(server.listen("inproc:s").value()));
  EXPECT_EQ(why.message, "inproc:s: nobody listens there");
}

TEST(Inproc, ANameIsFreeAgainWhenItsOwnerIsGone) {
  const auto network = make_local_network();
  for (int i = 0; i < 2; ++i) {
    TestNode server(make_inproc_transport(network, system_clock));
    EXPECT_TRUE(server.listen("inproc:s"));
  }
}

TEST(Inproc, ANodeMayTalkToItself) {
  TestNode node(make_inproc_transport(make_local_network(), system_clock));
  const LaneId lane = node.connect(node.listen("inproc:me").value());
  ASSERT_TRUE(node.wait([](const Seen& seen) { return seen.opened.size() == 2; }));
  node.send(lane, {});
  EXPECT_TRUE(node.wait([](const Seen& seen) { return seen.frames.size() == 1; }));
  EXPECT_FALSE(node.seen().frames.contains(lane));
}

// A node without a thread.
class CountingHandler final : public LaneHandler {
 public:
  void on_open(LaneId, const Peer&) override { ++opened; }
  void on_frame(LaneId, Frame) override { ++frames; }
  void on_close(LaneId, const Error&) override {}
  void on_wake() override {}

  int opened = 0;
  int frames = 0;
};

TEST(Inproc, OthersHandleWhatHasComeAsLongAsTheyMay) {
  const auto network = make_local_network(LocalWork::kThreadsOfWorkers);
  CountingHandler handler;
  const auto server = make_inproc_transport(network, system_clock);
  server->start(handler);
  server->let_others_run([&] { return server->turn(); });
  TestNode worker(make_inproc_transport(network, system_clock));
  const auto run_others = [&] { worker.transport().run_others(); };
  const LaneId lane = worker.connect(server->listen("inproc:s").value());
  EXPECT_EQ(handler.opened, 0);
  run_others();
  EXPECT_EQ(handler.opened, 1);
  worker.send(lane, {});
  run_others();
  EXPECT_EQ(handler.frames, 1);

  server->let_others_run(nullptr);
  worker.send(lane, {});
  run_others();
  EXPECT_EQ(handler.frames, 1);
  EXPECT_TRUE(server->turn());
  EXPECT_EQ(handler.frames, 2);
}

TEST(Inproc, ACallerOfANodeThatNeverRanIsToldOfItsEnd) {
  const auto network = make_local_network();
  auto server = make_inproc_transport(network, system_clock);
  const std::string address = server->listen("inproc:").value();
  TestNode worker(make_inproc_transport(network, system_clock));
  const LaneId lane = worker.connect(address);
  server.reset();
  EXPECT_EQ(worker.wait_closed(lane).code, Code::kUnavailable);
}

}  // namespace
}  // namespace pscloud

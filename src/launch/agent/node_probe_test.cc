#include "launch/agent/node_probe.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "net/http_server.h"
#include "net/unix_socket.h"

namespace pscloud {
namespace {

namespace fs = std::filesystem;
using std::chrono::steady_clock;

class NodeProbeTest : public testing::Test {
 protected:
  NodeProbeTest() { fs::create_directories(folder_); }
  ~NodeProbeTest() override { fs::remove_all(fs::path(testing::TempDir()) / fmt::format("probe-{}", ::getpid())); }

  std::unique_ptr<HttpServer> serve(const std::string& status, int code = 200) {
    HttpRoutes routes;
    routes["/status"] = [=] { return HttpReply{code, "application/json", status + "\n"}; };
    auto server = HttpServer::start(fmt::format("unix:{}/", folder_.string()), routes);
    EXPECT_TRUE(server) << server.error().message;
    return *std::move(server);
  }

  // Until all have answered, or had their time.
  std::optional<NodeProbe::Look> look(NodeProbe& probe) {
    probe.ask(steady_clock::now());
    std::optional<NodeProbe::Look> result;
    while (probe.is_asking() && !result) {
      std::vector<pollfd> polled;
      probe.add_to(polled);
      ::poll(polled.data(), polled.size(), 100);
      result = probe.work(steady_clock::now());
    }
    return result;
  }

  // Longer than the kernel takes a path of a socket.
  const fs::path folder_ = fs::path(testing::TempDir()) / fmt::format("probe-{}", ::getpid()) / std::string(120, 'x');
};

TEST_F(NodeProbeTest, EachNodeOfATaskIsAsked) {
  const auto first = serve(R"({"role":"worker","samples":{"push_bytes":1}})");
  const auto second = serve(R"({"role":"worker","samples":{"push_bytes":2}})");
  EXPECT_NE(first->address(), second->address());
  NodeProbe probe(folder_.string());
  const auto result = look(probe);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->figures, (Figures{{"push_bytes", 3}}));
  EXPECT_NE(result->status.find("\"parts\":["), std::string::npos);
}

TEST_F(NodeProbeTest, ANodeThatIsGoneLeavesNoSocketBehind) {
  serve("{}").reset();
  EXPECT_TRUE(fs::is_empty(folder_));
  NodeProbe probe(folder_.string());
  EXPECT_FALSE(look(probe));
}

TEST_F(NodeProbeTest, WhatIsNoStatusIsNotPassedOn) {
  const auto wrong = serve("no JSON");
  const auto busy = serve("{}", 503);
  const auto right = serve(R"({"role":"server"})");
  NodeProbe probe(folder_.string());
  const auto result = look(probe);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->status, R"({"role":"server"})");
}

TEST_F(NodeProbeTest, OneThatDoesNotAnswerHasItsTimeAndNoMore) {
  const auto deaf = listen_at_path((folder_ / "0").string());
  ASSERT_TRUE(deaf) << deaf.error().message;
  const auto right = serve(R"({"role":"server"})");
  NodeProbe probe(folder_.string());
  const auto now = steady_clock::now();
  probe.ask(now);
  EXPECT_LE(probe.deadline(), now + std::chrono::seconds(1));
  // The other has answered by then, for this waits until it has.
  std::vector<pollfd> polled;
  probe.add_to(polled);
  ASSERT_EQ(polled.size(), 2u);
  std::optional<NodeProbe::Look> result;
  while (::poll(polled.data(), polled.size(), 5000) > 0 && probe.is_asking() && !result) {
    result = probe.work(now);
    polled.clear();
    probe.add_to(polled);
    if (polled.size() == 1) result = probe.work(probe.deadline());
  }
  ASSERT_TRUE(result);
  EXPECT_EQ(result->status, R"({"role":"server"})");
}

TEST_F(NodeProbeTest, ATaskWithoutNodesCostsNothing) {
  NodeProbe probe((folder_ / "nothing").string());
  probe.ask(steady_clock::now());
  EXPECT_FALSE(probe.is_asking());
}

}  // namespace
}  // namespace pscloud

#include "launch/swarm/swarm_forming.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "base/mutex.h"
#include "io/scripted_http_server.h"

namespace pscloud {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// An engine that answers as tests want; tests/cluster/cloud_swarm_test.py has real ones.
class SwarmFormingTest : public testing::Test {
 protected:
  SwarmFormingTest()
      : folder_(testing::TempDir() + "swarm_forming_test." + std::to_string(::getpid())),
        server_((std::filesystem::create_directory(folder_),
                 [this](const std::string& request) { return answer(request); }),
                folder_ + "/sock"),
        engine_(address()) {}
  ~SwarmFormingTest() override { std::filesystem::remove_all(folder_); }

  EngineAddress address() const {
    EngineAddress address = find_engine("unix://" + folder_ + "/sock").value();
    address.http.tries = 1;
    return address;
  }

  std::string answer(const std::string& request) {
    MutexLock lock(mutex_);
    const auto is = [&](std::string_view start) { return request.starts_with(start); };
    if (is("GET /info")) return ScriptedHttpServer::text(200, R"({"Swarm":)" + info_ + "}");
    if (is("GET /swarm ")) return ScriptedHttpServer::text(200, R"({"JoinTokens":{"Worker":"SWMTKN-1-x"}})");
    if (is("GET /nodes")) return ScriptedHttpServer::text(200, nodes_);
    if (is("POST /swarm/")) {
      info_ = after_;
      return ScriptedHttpServer::text(status_, R"({"message":"as the test wants"})");
    }
    if (is("POST /nodes/n1/update?version=7 ")) {
      // It has changed meanwhile.
      nodes_ = R"([{"ID":"n1","Version":{"Index":8},"Spec":{"Role":"manager","Availability":"active"},
                    "Status":{"State":"ready"}}])";
      return ScriptedHttpServer::text(500, R"({"message":"update out of sequence"})");
    }
    return ScriptedHttpServer::text(200, "");
  }

  static Patience patience(int ms = 20000) {
    return {std::chrono::steady_clock::now() + std::chrono::milliseconds(ms), {}};
  }

  Mutex mutex_;
  std::string info_ = R"({"LocalNodeState":"inactive"})";
  std::string after_ = R"({"LocalNodeState":"active","NodeID":"n1"})";  // it was told to be in a swarm
  std::string nodes_ = R"([{"ID":"n1","Version":{"Index":7},"Spec":{"Role":"manager","Availability":"active"},
                            "Status":{"State":"ready"}}])";
  int status_ = 200;
  const std::string folder_;
  ScriptedHttpServer server_;
  DockerEngine engine_;
};

TEST_F(SwarmFormingTest, TheFirstEngineManagesAndTellsTheToken) {
  Patience waits = patience();
  const auto swarm = found_swarm(engine_, "10.0.0.1", waits);
  ASSERT_TRUE(swarm) << swarm.error().message;
  EXPECT_EQ(swarm->node, "n1");
  EXPECT_EQ(swarm->token, "SWMTKN-1-x");
  EXPECT_THAT(server_.requests(), Contains(HasSubstr(R"({"ListenAddr":"10.0.0.1:2377","AdvertiseAddr":"10.0.0.1"})")));
}

TEST_F(SwarmFormingTest, OneThatIsInASwarmIsNotAskedAgain) {
  info_ = after_;
  Patience waits = patience();
  EXPECT_EQ(join_swarm(engine_, "10.0.0.2", "10.0.0.1", "SWMTKN-1-x", waits).value(), "n1");
  EXPECT_THAT(server_.requests(), Not(Contains(StartsWith("POST"))));
}

TEST_F(SwarmFormingTest, AnEngineThatSaysItTookTooLongMayHaveJoined) {
  status_ = 503;
  Patience waits = patience();
  EXPECT_EQ(join_swarm(engine_, "10.0.0.2", "10.0.0.1", "SWMTKN-1-x", waits).value(), "n1");
  EXPECT_THAT(server_.requests(), Contains(HasSubstr(R"("RemoteAddrs":["10.0.0.1:2377"],"JoinToken":"SWMTKN-1-x")")));
}

TEST_F(SwarmFormingTest, WhatCanNeverSucceedIsNotTriedAgain) {
  status_ = 400;
  after_ = info_;
  Patience waits = patience();
  const auto joined = join_swarm(engine_, "10.0.0.2", "10.0.0.1", "SWMTKN-1-secret", waits);
  EXPECT_EQ(joined.error().code, Code::kInvalid);
  EXPECT_THAT(joined.error().message, HasSubstr("as the test wants"));
  EXPECT_THAT(joined.error().message, Not(HasSubstr("secret")));
}

TEST_F(SwarmFormingTest, AnEngineThatStaysOutIsNamedWithTheReason) {
  status_ = 503;
  after_ = info_;
  Patience waits = patience(300);
  const auto joined = join_swarm(engine_, "10.0.0.2", "10.0.0.1", "SWMTKN-1-x", waits);
  EXPECT_EQ(joined.error().code, Code::kTimeout);
  EXPECT_THAT(joined.error().message, HasSubstr("it is not in the swarm: "));
  EXPECT_THAT(joined.error().message, HasSubstr("as the test wants"));
}

TEST_F(SwarmFormingTest, ANodeThatHasChangedMeanwhileIsLookedAtAgain) {
  Patience waits = patience();
  std::vector<std::string> ready;
  const auto labelled = label_nodes(
      engine_, {{"n1", {{"pscloud.role", "server"}}}}, [&](const std::string& node) { ready.push_back(node); }, waits);
  ASSERT_TRUE(labelled) << labelled.error().message;
  EXPECT_THAT(ready, ElementsAre("n1"));
  EXPECT_THAT(server_.requests(),
              Contains(HasSubstr(R"({"Role":"manager","Availability":"active","Labels":{"pscloud.role":"server"}})")));
  EXPECT_THAT(server_.requests(), Contains(StartsWith("POST /nodes/n1/update?version=8 ")));
}

TEST_F(SwarmFormingTest, NodesThatDoNotComeAreCounted) {
  Patience waits = patience(300);
  const auto labelled = label_nodes(
      engine_, {{"n1", {}}, {"n2", {}}}, [](const std::string&) {}, waits);
  EXPECT_EQ(labelled.error().code, Code::kTimeout);
  EXPECT_THAT(labelled.error().message, StartsWith("1 nodes are not ready in the swarm: "));
}

}  // namespace
}  // namespace pscloud

#include "launch/swarm/node_signals.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/mutex.h"
#include "io/scripted_http_server.h"
#include "launch/process/tool.h"
#include "launch/swarm/engine_call.h"

namespace pscloud {
namespace {

using std::chrono::milliseconds;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

// A line of a service's log, as engines send it.
std::string frame(const std::string& line) {
  const std::string text = "2026-11-17T09:19:19.547457094Z " + line + "\n";
  return std::string("\1\0\0\0\0\0\0", 7) + static_cast<char>(text.size()) + text;
}

// An engine that makes services c1, c2, ...; tests/cluster/swarm_test.py has real ones.
class NodeSignalsTest : public testing::Test {
 protected:
  NodeSignalsTest()
      : folder_(testing::TempDir() + "node_signals_test." + std::to_string(::getpid())),
        server_((std::filesystem::create_directory(folder_), [this](const auto& request) { return answer(request); }),
                folder_ + "/sock"),
        engine_(find_engine("unix://" + folder_ + "/sock").value()) {
    Job job;
    job.run = "r";
    RoleSpec worker;
    worker.count = 2;
    worker.image = "x:1";
    job.roles = {worker};
    Cluster cluster;
    cluster.target = "swarm";
    plan_ = make_plan(job, cluster, "j1").value();
  }
  ~NodeSignalsTest() override { std::filesystem::remove_all(folder_); }

  std::string answer(const std::string& request) {
    MutexLock lock(mutex_);
    if (request.starts_with("POST /configs/create")) return ScriptedHttpServer::text(201, R"({"ID":"program"})");
    if (request.starts_with("POST /services/create")) {
      return ScriptedHttpServer::text(201, R"({"ID":"c)" + std::to_string(++calls_) + "\"}");
    }
    if (request.starts_with("GET /services/c1/logs")) return ScriptedHttpServer::text(200, log_);
    return ScriptedHttpServer::text(200, "");
  }

  // The call of that number is in this state.
  void look(NodeSignals& signals, int call, const std::string& state, NodeSignals::Time now) {
    const std::string service = "c" + std::to_string(call);
    signals.look(
        JsonValue::parse(R"([{"ServiceID":")" + service + R"(","Status":{"State":")" + state + R"("}}])").value(), now);
  }

  // The requests that begin so, whole.
  std::vector<std::string> asked(std::string_view start) {
    std::vector<std::string> found = server_.requests();
    std::erase_if(found, [&](const std::string& request) { return !request.starts_with(start); });
    return found;
  }

  const std::string folder_;
  Plan plan_;
  Mutex mutex_;
  int calls_ GUARDED_BY(mutex_) = 0;
  std::string log_ = frame("HTTP/1.0 200 OK\r") + frame("\r") + frame(R"([{"Id":"k1","ImageID":"sha256:5e"}])");
  ScriptedHttpServer server_;
  DockerEngine engine_;
  const TaskId first_{TaskRole::kWorker, 0};
  const TaskId second_{TaskRole::kWorker, 1};
  const NodeSignals::Time now_ = {};
};

TEST_F(NodeSignalsTest, ANodeIsTriedOnceAndThenGetsAllSignalsInOneCall) {
  NodeSignals signals(engine_, plan_, "/var/run/docker.sock");
  EXPECT_FALSE(signals.send(first_, "n2", "k1", "SIGTERM", now_));  // nobody has heard of the node
  signals.meet("n2", "k1", "x:1", now_);
  signals.meet("n2", "k2", "x:1", now_);
  ASSERT_THAT(asked("POST /services/create"),
              ElementsAre(AllOf(HasSubstr(R"("Image":"x:1")"), HasSubstr("GET /containers/json?filters="),
                                HasSubstr("node.id==n2"), HasSubstr(R"("pscloud.job":"j1")"))));

  // What is asked for too early waits.
  EXPECT_TRUE(signals.send(first_, "n2", "k1", "SIGTERM", now_));
  signals.begin(now_);
  look(signals, 1, "running", now_);
  EXPECT_EQ(asked("POST /services/create").size(), 1u);
  look(signals, 1, "complete", now_);
  EXPECT_EQ(asked("DELETE /services/c1 ").size(), 1u);
  EXPECT_TRUE(signals.send(second_, "n2", "k2", "SIGKILL", now_));
  signals.begin(now_);
  const auto calls = asked("POST /services/create");
  ASSERT_EQ(calls.size(), 2u);
  EXPECT_THAT(calls[1],
              AllOf(HasSubstr(R"("Image":"sha256:5e")"),
                    HasSubstr(R"("POST /containers/k1/kill?signal=SIGTERM","POST /containers/k2/kill?signal=SIGKILL")"),
                    HasSubstr(R"("Source":"/var/run/docker.sock")")));
  look(signals, 2, "complete", now_);
  EXPECT_EQ(asked("DELETE /services/c2 ").size(), 1u);
  EXPECT_EQ(asked("POST /configs/create").size(), 1u);
  EXPECT_THAT(signals.take_failed(), ElementsAre());
}

TEST_F(NodeSignalsTest, ANodeThatRefusesIsNotAskedAgain) {
  NodeSignals signals(engine_, plan_, "/nowhere.sock");
  signals.meet("n2", "k1", "x:1", now_);
  EXPECT_TRUE(signals.send(first_, "n2", "k1", "SIGTERM", now_));
  look(signals, 1, "rejected", now_);
  EXPECT_THAT(signals.take_failed(), ElementsAre(first_));
  EXPECT_THAT(signals.take_failed(), ElementsAre());
  EXPECT_FALSE(signals.send(first_, "n2", "k1", "SIGKILL", now_));
  EXPECT_EQ(asked("DELETE /services/c1 ").size(), 1u);
}

TEST_F(NodeSignalsTest, AnEngineThatDoesNotKnowTheContainerIsAnother) {
  log_ = frame("HTTP/1.0 200 OK\r") + frame("\r") + frame("[]");
  NodeSignals signals(engine_, plan_, "/other.sock");
  signals.meet("n2", "k1", "x:1", now_);
  look(signals, 1, "complete", now_);
  EXPECT_FALSE(signals.send(first_, "n2", "k1", "SIGTERM", now_));
}

TEST_F(NodeSignalsTest, ASignalThatTakesTooLongHasFailed) {
  NodeSignals signals(engine_, plan_, "/var/run/docker.sock");
  signals.meet("n2", "k1", "x:1", now_);
  look(signals, 1, "complete", now_);
  signals.send(first_, "n2", "k1", "SIGTERM", now_);
  signals.begin(now_);
  look(signals, 2, "preparing", now_ + milliseconds(1999));
  EXPECT_THAT(signals.take_failed(), ElementsAre());
  look(signals, 2, "preparing", now_ + milliseconds(2000));
  EXPECT_THAT(signals.take_failed(), ElementsAre(first_));
  EXPECT_EQ(asked("DELETE /services/c2 ").size(), 1u);
}

TEST_F(NodeSignalsTest, ASignalWaitsOnlyASecondForANodeThatIsStillTried) {
  NodeSignals signals(engine_, plan_, "/var/run/docker.sock");
  signals.meet("n2", "k1", "x:1", now_);
  signals.send(first_, "n2", "k1", "SIGTERM", now_);
  signals.begin(now_ + milliseconds(999));
  EXPECT_THAT(signals.take_failed(), ElementsAre());
  signals.begin(now_ + milliseconds(1000));
  EXPECT_THAT(signals.take_failed(), ElementsAre(first_));
}

// The program itself.
TEST(EngineCall, AsksOneThingAfterAnother) {
  const std::string folder = testing::TempDir() + "engine_call_test." + std::to_string(::getpid());
  std::filesystem::create_directory(folder);
  const std::string program = folder + "/engine_call";
  std::ofstream(program, std::ios::binary) << engine_calls().front().bytes;
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  ScriptedHttpServer server(
      [](const std::string& request) {
        if (request.starts_with("GET /long ")) return ScriptedHttpServer::text(200, std::string(100000, 'x') + "end");
        return ScriptedHttpServer::text(request.starts_with("POST /ended ") ? 409 : 403, "no\n");
      },
      folder + "/sock");
  const auto run = [&](const std::string& socket, const std::vector<std::string>& requests) {
    std::vector<std::string> words{program, socket};
    words.insert(words.end(), requests.begin(), requests.end());
    return run_tool(words, "", std::chrono::seconds(20)).value();
  };
  const ToolOutput good = run(folder + "/sock", {"GET /long", "POST /ended"});
  EXPECT_EQ(good.code, 0);
  EXPECT_THAT(good.out, StartsWith("HTTP/1.1 200 Word\r\n"));
  EXPECT_THAT(good.out, HasSubstr(std::string(100000, 'x') + "endHTTP/1.1 409 "));
  EXPECT_THAT(server.requests()[1], StartsWith("POST /ended HTTP/1.0\r\n"));
  EXPECT_EQ(run(folder + "/sock", {"GET /denied", "GET /long"}).code, 1);
  EXPECT_EQ(run(folder + "/nowhere", {"GET /long"}).code, 1);
  EXPECT_EQ(run(folder + std::string(200, 'x'), {"GET /long"}).code, 1);
  EXPECT_EQ(run(folder + "/sock", {}).code, 1);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace pscloud

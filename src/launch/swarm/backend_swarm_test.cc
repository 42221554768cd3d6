#include "launch/swarm/backend_swarm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "base/mutex.h"
#include "io/scripted_http_server.h"

namespace pscloud {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

// A log with one line.
const std::string kBye = std::string("\1\0\0\0\0\0\0\x23", 8) + "2026-11-17T09:19:19.547457094Z bye\n";

// The answer of an engine to what a call has asked.
const std::string kImage =
    std::string("\1\0\0\0\0\0\0\x39", 8) + "2026-11-17T09:19:19.547457094Z [{\"ImageID\":\"sha256:5e\"}]\n";

// An engine that answers as tests want; tests/cluster/swarm_test.py has real ones.
class SwarmBackendTest : public testing::Test {
 protected:
  SwarmBackendTest()
      : folder_(testing::TempDir() + "backend_swarm_test." + std::to_string(::getpid())),
        ledger_((std::filesystem::create_directory(folder_), Ledger::open(folder_ + "/ledger").value())),
        engine_([this](const std::string& request) { return answer(request); }, folder_ + "/sock") {
    Job job;
    job.run = "r";
    RoleSpec worker;
    worker.count = 1;
    worker.image = "x:1";
    job.roles = {worker};
    Cluster cluster;
    cluster.target = "swarm";
    plan_ = make_plan(job, cluster, "j1").value();
  }
  ~SwarmBackendTest() override { std::filesystem::remove_all(folder_); }

  SwarmBackend backend() const {
    SwarmOptions options;
    options.host = "unix://" + folder_ + "/sock";
    return SwarmBackend(options);
  }

  std::string answer(const std::string& request) {
    MutexLock lock(mutex_);
    const auto is = [&](std::string_view start) { return request.starts_with(start); };
    if (is("GET /info")) return ScriptedHttpServer::text(200, info_);
    if (is("GET /nodes")) {
      return ScriptedHttpServer::text(
          200, R"([{"ID":"n1","Description":{"Hostname":"node1"},"Status":{"State":")" + node_state_ + "\"}}]");
    }
    if (is("POST /networks/create")) return ScriptedHttpServer::text(201, R"({"Id":"net1"})");
    if (is("POST /configs/create") && calls_) return ScriptedHttpServer::text(201, R"({"ID":"program"})");
    if (is("POST /services/create") && request.find("/pscloud-engine-call") != std::string::npos) {
      return make_call(request.find("/kill?signal=") != std::string::npos);
    }
    if (is("GET /services/call/logs")) return ScriptedHttpServer::text(200, kImage);
    if (is("POST /services/create")) return ScriptedHttpServer::text(201, R"({"ID":"s1"})");
    if (is("GET /services/s1/logs")) return ScriptedHttpServer::text(200, log_);
    if (is("GET /services/s1 ")) return ScriptedHttpServer::text(200, R"({"ID":"s1","Version":{"Index":17}})");
    if (is("GET /tasks")) return ScriptedHttpServer::text(200, tasks_);
    if (is("GET /services")) return ScriptedHttpServer::text(200, services_);
    // It ends as soon as it is told to, and a swarm has another in its place, which waits for ever.
    if (is("POST /services/s1/update?version=17 ") || is("POST /containers/c1/kill?")) {
      tasks_ = R"([{"ID":"t1","ServiceID":"s1","NodeID":")" + node_ + R"(","Status":{"State":"shutdown"}},
                   {"ID":"t2","ServiceID":"s1","Status":{"State":"pending","Err":"no suitable node"}}])";
      log_ = kBye;
      return ScriptedHttpServer::text(200, "{}");
    }
    if (is("GET /")) return ScriptedHttpServer::text(200, "[]");
    if (is("DELETE /services/s1")) services_ = tasks_ = "[]";
    return ScriptedHttpServer::text(200, "");
  }

  // A call that is done at once; the task ends by its signals.
  std::string make_call(bool signals) {
    tasks_.pop_back();
    if (signals) {
      tasks_ = R"([{"ID":"t1","ServiceID":"s1","NodeID":"n2","Status":{"State":"complete"}})";
      log_ = kBye;
    }
    tasks_ += R"(,{"ID":"t9","ServiceID":"call","NodeID":"n2","Status":{"State":"complete"}}])";
    return ScriptedHttpServer::text(201, R"({"ID":"call"})");
  }

  void set_task(const std::string& status) {
    MutexLock lock(mutex_);
    tasks_ = R"([{"ID":"t1","ServiceID":"s1","NodeID":")" + node_ + R"(","Status":)" + status + "}]";
  }

  // Until one of the kind has come; all that has.
  std::vector<TaskEvent> events_until(SwarmBackend& swarm, TaskEvent::Kind kind) {
    std::vector<TaskEvent> all;
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (std::chrono::steady_clock::now() < deadline) {
      const std::vector<TaskEvent> some = swarm.wait(deadline, -1).value();
      all.insert(all.end(), some.begin(), some.end());
      for (const TaskEvent& event : all) {
        if (event.kind == kind) return all;
      }
    }
    ADD_FAILURE() << "it has not come";
    return all;
  }

  const std::string folder_;
  Ledger ledger_;
  Plan plan_;
  Mutex mutex_;
  std::string info_ = R"({"Swarm":{"LocalNodeState":"active","ControlAvailable":true,"NodeID":"n1"}})";
  std::string node_ = "n1";  // of the task
  std::string node_state_ = "ready";
  std::string tasks_ = "[]";
  std::string services_ = R"([{"ID":"s1","Spec":{"Name":"r-j1-worker-0","Labels":{"pscloud.job":"j1"}}},
                              {"ID":"other","Spec":{"Name":"precious","Labels":{"pscloud.job":"j2"}}}])";
  std::string log_;
  bool calls_ = false;  // its nodes can be asked
  ScriptedHttpServer engine_;
};

TEST_F(SwarmBackendTest, TellsATasksWayAndRemovesItsServiceAtTheEnd) {
  SwarmBackend swarm = backend();
  ASSERT_TRUE(swarm.check(plan_));
  ASSERT_TRUE(swarm.start(plan_, ledger_));
  EXPECT_EQ(ledger_.remaining().size(), 1u);
  set_task(R"({"State":"running"})");
  const auto begun = events_until(swarm, TaskEvent::Kind::kRunning);
  ASSERT_GE(begun.size(), 3u);
  EXPECT_EQ(begun[0].kind, TaskEvent::Kind::kPlaced);
  EXPECT_EQ(begun[0].host, "node1");
  EXPECT_EQ(begun[1].kind, TaskEvent::Kind::kArrived);
  EXPECT_EQ(begun[1].address.text(), "worker-0:20000");
  {
    MutexLock lock(mutex_);
    log_ = kBye;
  }
  set_task(R"j({"State":"failed","Err":"task: non-zero exit (7)","ContainerStatus":{"ExitCode":7}})j");
  const auto ended = events_until(swarm, TaskEvent::Kind::kExited);
  EXPECT_EQ(ended.back().code, 7);
  EXPECT_EQ(ended.front().text, "bye");
  EXPECT_EQ(ended.size(), 2u);
  EXPECT_THAT(engine_.requests(), Contains(StartsWith("DELETE /services/s1 ")));
}

TEST_F(SwarmBackendTest, AMissingImageIsNamedWithItsNode) {
  SwarmBackend swarm = backend();
  ASSERT_TRUE(swarm.start(plan_, ledger_));
  set_task(R"({"State":"rejected","Err":"No such image: x:1","ContainerStatus":{"ExitCode":0}})");
  EXPECT_THAT(events_until(swarm, TaskEvent::Kind::kLost).back().text, StartsWith("node1 has no image x:1"));
}

TEST_F(SwarmBackendTest, ANodeThatIsDownLosesItsTasks) {
  SwarmBackend swarm = backend();
  ASSERT_TRUE(swarm.start(plan_, ledger_));
  set_task(R"({"State":"running"})");
  events_until(swarm, TaskEvent::Kind::kRunning);
  {
    MutexLock lock(mutex_);
    node_state_ = "down";
  }
  EXPECT_EQ(events_until(swarm, TaskEvent::Kind::kLost).back().text, "node1 is down");
}

TEST_F(SwarmBackendTest, WhatIsStoppedIsReadToItsLastLine) {
  for (const char* node : {"n1", "n2"}) {  // the engine's own, and one that only the swarm can reach
    SwarmBackend swarm = backend();
    {
      MutexLock lock(mutex_);
      node_ = node;
      log_.clear();
    }
    ASSERT_TRUE(swarm.start(plan_, ledger_));
    set_task(R"({"State":"running","ContainerStatus":{"ContainerID":"c1"}})");
    events_until(swarm, TaskEvent::Kind::kRunning);
    ASSERT_TRUE(swarm.stop({TaskRole::kWorker, 0}, false));
    const auto ended = events_until(swarm, TaskEvent::Kind::kExited);
    EXPECT_EQ(ended.front().text, "bye") << node;
    EXPECT_EQ(ended.back().code, 0);
    const auto requests = engine_.requests();
    EXPECT_EQ(std::ranges::count_if(requests, [](const auto& r) { return r.starts_with("DELETE /services/s1 "); }),
              node == std::string("n1") ? 1 : 2);
  }
  EXPECT_THAT(engine_.requests(), Contains(StartsWith("POST /containers/c1/kill?signal=SIGTERM ")));
  EXPECT_THAT(engine_.requests(), Contains(HasSubstr("node.id==nowhere")));
}

TEST_F(SwarmBackendTest, ATaskOfAnotherNodeGetsItsSignalByACallThere) {
  node_ = "n2";
  SwarmBackend swarm = backend();
  ASSERT_TRUE(swarm.start(plan_, ledger_));
  set_task(R"({"State":"running","ContainerStatus":{"ContainerID":"c1"}})");
  calls_ = true;
  events_until(swarm, TaskEvent::Kind::kRunning);
  for (const bool at_once : {false, true}) ASSERT_TRUE(swarm.stop({TaskRole::kWorker, 0}, at_once));
  EXPECT_EQ(events_until(swarm, TaskEvent::Kind::kExited).front().text, "bye");
  EXPECT_THAT(engine_.requests(), Contains(HasSubstr(R"("POST /containers/c1/kill?signal=SIGTERM","POST /cont)")));
  EXPECT_THAT(engine_.requests(), testing::Not(Contains(HasSubstr("node.id==nowhere"))));
}

TEST_F(SwarmBackendTest, WhatIsNotTextIsRefusedBeforeAnythingIsMade) {
  plan_.tasks[0].spec.command = {"cat", "\xff"};
  EXPECT_THAT(backend().check(plan_).error().message, HasSubstr("the argument '\\xff' of worker-0 is not UTF-8"));
  plan_.tasks[0].spec.command = {};
  plan_.tasks[0].spec.environment = {{"NAME", "\xff"}};
  EXPECT_THAT(backend().check(plan_).error().message, HasSubstr("the variable NAME of worker-0 is not UTF-8"));
  EXPECT_THAT(engine_.requests(), ElementsAre());
}

TEST_F(SwarmBackendTest, CleansAfterAnotherProcessAndTouchesOnlyWhatIsOurs) {
  {
    SwarmBackend killed = backend();
    ASSERT_TRUE(killed.start(plan_, ledger_));
  }
  SwarmBackend swarm = backend();
  EXPECT_THAT(swarm.clean(plan_, ledger_).value(), ElementsAre());
  EXPECT_TRUE(ledger_.remaining().empty());
  EXPECT_THAT(engine_.requests(), Contains(StartsWith("DELETE /services/s1 ")));
  EXPECT_THAT(engine_.requests(), testing::Not(Contains(StartsWith("DELETE /services/other "))));
}

TEST_F(SwarmBackendTest, NothingIsLeftOfAJobWhoseMachinesAreGone) {
  {
    SwarmBackend killed = backend();
    ASSERT_TRUE(killed.start(plan_, ledger_));
  }
  SwarmOptions options;
  options.machines.hosts.emplace_back();
  options.machines.ssh_config = folder_ + "/removed_with_the_cluster";
  SwarmBackend swarm(options);
  EXPECT_THAT(swarm.clean(plan_, ledger_).value(), ElementsAre());
  EXPECT_TRUE(ledger_.remaining().empty());
}

TEST_F(SwarmBackendTest, SaysWhatIsMissingBeforeAnythingIsMade) {
  info_ = R"({"Swarm":{"LocalNodeState":"inactive"}})";
  EXPECT_THAT(backend().check(plan_).error().message, HasSubstr("is in no swarm"));
  info_ = R"({"Swarm":{"LocalNodeState":"active","RemoteManagers":[{"Addr":"10.0.0.9:2377"}]}})";
  EXPECT_THAT(backend().check(plan_).error().message, HasSubstr("name a manager: 10.0.0.9:2377"));
  plan_.tasks[0].image = "";
  EXPECT_THAT(backend().check(plan_).error().message, HasSubstr("worker-0 has no image"));
}

}  // namespace
}  // namespace pscloud

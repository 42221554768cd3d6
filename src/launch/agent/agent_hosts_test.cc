#include "launch/agent/agent_hosts.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pscloud {
namespace {

using std::chrono::steady_clock;
using testing::HasSubstr;

constexpr std::chrono::seconds kHostsPatience{20};
constexpr TaskId kFirstTask{TaskRole::kWorker, 0};
constexpr TaskId kSecondTask{TaskRole::kWorker, 1};

// Agents that are shell scripts: they say what the test wants them to.
class AgentHostsTest : public testing::Test {
 protected:
  void add(const std::string& host, const std::string& script) {
    auto connection = AgentConnection::open(host, {"/bin/sh", "-c", script}, inherited_environment());
    ASSERT_TRUE(connection) << connection.error().message;
    hosts_.add(*std::move(connection));
  }

  TaskSpec spec(TaskId id) {
    TaskSpec spec;
    spec.id = id;
    return spec;
  }

  // All events but kPlaced, until `count` of them have come.
  std::vector<TaskEvent> events(size_t count) {
    std::vector<TaskEvent> all;
    const auto deadline = steady_clock::now() + kHostsPatience;
    while (all.size() < count && steady_clock::now() < deadline) {
      for (TaskEvent& event : hosts_.wait(deadline, -1)) {
        if (event.kind != TaskEvent::Kind::kPlaced) all.push_back(std::move(event));
      }
    }
    EXPECT_EQ(all.size(), count);
    all.resize(count);
    return all;
  }

  AgentHosts hosts_;
};

TEST_F(AgentHostsTest, EventsComeWithTheNameOfTheirHost) {
  add("a", R"(read line; echo '{"task":"worker-0","arrived":{"address":"10.0.0.1:7","host":"x"}}'; cat >/dev/null)");
  hosts_.start("a", spec(kFirstTask));
  const TaskEvent event = events(1).front();
  EXPECT_EQ(event.kind, TaskEvent::Kind::kArrived);
  EXPECT_EQ(event.address.text(), "10.0.0.1:7");
  EXPECT_EQ(event.host, "a");
}

TEST_F(AgentHostsTest, AHostThatDiesHasLostItsTasksAndNoOthers) {
  add("a", "read line; echo 'Connection to a closed' >&2");
  add("b", R"(read line; echo '{"task":"worker-1","exited":{"code":0,"signal":0}}'; cat >/dev/null)");
  hosts_.start("a", spec(kFirstTask));
  hosts_.start("b", spec(kSecondTask));
  for (const TaskEvent& event : events(2)) {
    EXPECT_EQ(event.kind, event.task == kFirstTask ? TaskEvent::Kind::kLost : TaskEvent::Kind::kExited);
    EXPECT_EQ(event.text, event.task == kFirstTask ? "a is lost: Connection to a closed" : "");
  }
}

TEST_F(AgentHostsTest, AnAgentThatTalksNonsenseIsLost) {
  for (const char* line : {"", "nonsense", "[]", "{}", R"({"task":"worker-9"})", R"({"task":"worker-0","exited":3})",
                           R"({"task":"worker-0","arrived":{"address":"x"}})"}) {
    AgentHosts hosts;
    // Without stderr: nobody waits whether it has a complaint.
    const std::string script = fmt::format("exec 2>&-; echo '{}'; cat >/dev/null", line);
    auto connection = AgentConnection::open("a", {"/bin/sh", "-c", script}, inherited_environment());
    ASSERT_TRUE(connection);
    hosts.add(*std::move(connection));
    hosts.start("a", spec(kFirstTask));
    std::vector<TaskEvent> all;
    const auto deadline = steady_clock::now() + kHostsPatience;
    while (all.size() < 2 && steady_clock::now() < deadline) {
      for (TaskEvent& event : hosts.wait(deadline, -1)) all.push_back(std::move(event));
    }
    ASSERT_EQ(all.size(), 2u);
    EXPECT_EQ(all[1].kind, TaskEvent::Kind::kLost);
    EXPECT_THAT(all[1].text, HasSubstr("cannot be understood")) << line;
  }
}

TEST_F(AgentHostsTest, AnAgentSpeaksForItsOwnTasksOnly) {
  add("a", R"(read line; echo '{"task":"worker-1","exited":{"code":0,"signal":0}}';
              echo '{"task":"worker-0","lost":"x"}'; cat >/dev/null)");
  add("b", "cat >/dev/null");
  hosts_.start("a", spec(kFirstTask));
  hosts_.start("b", spec(kSecondTask));
  EXPECT_EQ(events(1).front().task, kFirstTask);
}

TEST_F(AgentHostsTest, AQuestionIsAnsweredByEachOrItSaysWhyNot) {
  add("a", R"(read line; echo '{"answer":{"x":"1"}}'; cat >/dev/null)");
  add("b", R"(read line; echo '{"answer":{"error":"no room"}}'; cat >/dev/null)");
  add("c", "exit 1");
  const auto answers =
      hosts_.ask({{"a", "{}"}, {"b", "{}"}, {"c", "{}"}, {"d", "{}"}}, steady_clock::now() + kHostsPatience);
  ASSERT_EQ(answers.given.size(), 1u);
  EXPECT_EQ(answers.given.at("a")["x"].text(), "1");
  EXPECT_EQ(answers.wrong.at("b"), "no room");
  EXPECT_THAT(answers.wrong.at("c"), HasSubstr("the other end"));
  EXPECT_EQ(answers.wrong.at("d"), "is not connected");
}

TEST_F(AgentHostsTest, ALineWithoutEndIsAnErrorAndNotAllOfTheMemory) {
  add("a", "exec 2>&-; read line; head -c 3000000 /dev/zero | tr '\\0' x; cat >/dev/null");
  hosts_.start("a", spec(kFirstTask));
  EXPECT_THAT(events(1).front().text, HasSubstr("longer than"));
}

TEST_F(AgentHostsTest, WhoDoesNotEndIsEnded) {
  add("a", "trap '' TERM; echo; exec sleep 1000");
  hosts_.end(steady_clock::now() + std::chrono::milliseconds(50));
  EXPECT_TRUE(hosts_.empty());
}

}  // namespace
}  // namespace pscloud

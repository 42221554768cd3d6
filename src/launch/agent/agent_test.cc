#include "launch/agent/agent.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>  // NOLINT: kill() is POSIX
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>

#include "io/scripted_http_server.h"
#include "launch/agent/agent_stream.h"
#include "launch/agent/stream_link.h"
#include "launch/agent/task_runner.h"
#include "launch/process/processes.h"
#include "net/http_server.h"

namespace pscloud {
namespace {

namespace fs = std::filesystem;
using std::chrono::steady_clock;
using Kind = TaskEvent::Kind;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::chrono::seconds kAgentPatience{20};
constexpr TaskId kWorker{TaskRole::kWorker, 0};

// An agent in a process of its own, as it lives, and a stream to it.
class AgentTest : public testing::Test {
 protected:
  void SetUp() override { open_agent(0); }

  void open_agent(int silence_ms) {
    auto ends = make_socket_pair();
    ASSERT_TRUE(ends);
    // ThreadSanitizer writes what is left of it when a process ends by _exit(): a task's output would have it, too.
    std::fflush(stdout);
    agent_ = ::fork();
    ASSERT_GE(agent_, 0);
    if (agent_ == 0) {
      ends->first = Fd();
      StreamLink link(
          std::move(ends->second), Fd(), silence_ms, [](const JsonValue&) { return "{}"; }, steady_clock::now());
      ::_exit(run_agent(link, {}));
    }
    ends->second = Fd();
    stream_.emplace(std::move(ends->first), Fd());
  }

  void TearDown() override {
    stream_.reset();
    if (agent_ > 0) ::waitpid(agent_, nullptr, 0);
    fs::remove_all(folder_);
  }

  int agent_exit() {
    int status = 0;
    ::waitpid(std::exchange(agent_, -1), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
  }

  TaskSpec spec(const std::string& script, TaskId id = kWorker) {
    TaskSpec spec;
    spec.job = job_;
    spec.run = "r";
    spec.id = id;
    spec.command = {"/bin/sh", "-c", script};
    spec.private_folder = (folder_ / id.text()).string();
    spec.advertise = "127.0.0.1";
    spec.stop_grace_ms = 200;
    return spec;
  }

  // The next event that is no line and no sample; those are kept.
  TaskEvent next() {
    const auto deadline = steady_clock::now() + kAgentPatience;
    while (true) {
      for (size_t i = 0; i < events_.size(); ++i) {
        const TaskEvent event = events_[i];
        events_.erase(events_.begin() + static_cast<ptrdiff_t>(i--));
        if (event.kind != Kind::kLine && event.kind != Kind::kSample) return event;
        if (event.kind == Kind::kLine) lines_.push_back(event.text);
        if (event.kind == Kind::kSample) samples_.push_back(event);
      }
      if (stream_->broken() || steady_clock::now() > deadline) {
        ADD_FAILURE() << "no event: " << stream_->broken().value_or("too late");
        return {.kind = Kind::kPlaced, .task = kWorker};
      }
      std::vector<pollfd> polled;
      stream_->add_to(polled);
      ::poll(polled.data(), polled.size(), 100);
      std::vector<JsonValue> answers;
      stream_->read(100, events_, answers);
    }
  }

  Address arrives(TaskId id = kWorker) {
    const TaskEvent event = next();
    EXPECT_EQ(event.kind, Kind::kArrived) << event.text;
    EXPECT_EQ(event.task, id);
    return event.address;
  }

  void release(const std::vector<TaskAddress>& tasks) { stream_->send(view_line({job_, tasks})); }

  // Starts one task and lets it run.
  void run(const TaskSpec& spec) {
    stream_->send(start_line(spec));
    release({{spec.id, arrives(spec.id)}});
    EXPECT_EQ(next().kind, Kind::kRunning);
  }

  // Until the task has written this line.
  void says(const std::string& text) {
    const auto deadline = steady_clock::now() + kAgentPatience;
    while (steady_clock::now() < deadline && std::ranges::find(lines_, text) == lines_.end()) {
      std::vector<pollfd> polled;
      stream_->add_to(polled);
      ::poll(polled.data(), polled.size(), 100);
      std::vector<JsonValue> answers;
      stream_->read(100, events_, answers);
      std::erase_if(events_, [&](const TaskEvent& event) {
        if (event.kind == Kind::kLine) lines_.push_back(event.text);
        return event.kind == Kind::kLine;
      });
    }
    EXPECT_THAT(lines_, testing::Contains(text));
  }

  std::vector<ProcessIdentity> marked() const {
    return processes_with_entry(fmt::format("{}={}/", kTaskMark, job_), true);
  }
  // Nothing of the job runs, within the agents' time to see to it.
  void expect_nothing_left() {
    const auto deadline = steady_clock::now() + kAgentPatience;
    while (!marked().empty() && steady_clock::now() < deadline) ::usleep(2000);
    EXPECT_EQ(marked().size(), 0u);
    EXPECT_FALSE(fs::exists(folder_ / kWorker.text()));
  }

  const std::string job_ = fmt::format("jtest{}", ::getpid());
  const fs::path folder_ = fs::temp_directory_path() / job_;
  pid_t agent_ = -1;
  std::optional<AgentStream> stream_;
  std::vector<TaskEvent> events_;
  std::vector<std::string> lines_;
  std::vector<TaskEvent> samples_;
};

TEST(SpotNotice, IsReadOrRefused) {
  const auto notice = parse_spot_notice(R"({"action": "terminate", "time": "2026-11-17T08:22:00Z"})");
  ASSERT_TRUE(notice) << notice.error().message;
  EXPECT_EQ(notice->action, "terminate");
  EXPECT_EQ(notice->at.time_since_epoch().count(), 1794903720);  // date -u -d 2026-11-17T08:22:00Z +%s
  EXPECT_EQ(notice->seconds_left(notice->at - std::chrono::seconds(90)), 90);
  EXPECT_EQ(notice->seconds_left(notice->at + std::chrono::seconds(90)), 0);
  for (const char* wrong : {"", "{}", "soon", R"({"action": "terminate", "time": "tomorrow"})", R"({"time": 7})"}) {
    EXPECT_EQ(parse_spot_notice(wrong).error().code, Code::kCorrupt) << wrong;
  }
}

TEST_F(AgentTest, WhenAProgramEndedByItselfIsToldAndNotWhenItWasToldTo) {
  const auto unix_us = [] {
    return std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::system_clock::now().time_since_epoch())
        .count();
  };
  const int64_t before = unix_us();
  run(spec("exit 7"));
  const TaskEvent exited = next();
  EXPECT_EQ(exited.code, 7);
  EXPECT_GE(exited.ended_unix_us, before);
  EXPECT_LE(exited.ended_unix_us, unix_us());
  EXPECT_GT(exited.ended_ago.count(), 0);  // its last lines and processes were seen to
  EXPECT_LE(exited.ended_ago.count(), unix_us() - before);
  run(spec("exec sleep 1000", {TaskRole::kWorker, 1}));
  stream_->send(stop_line({TaskRole::kWorker, 1}, false));
  const TaskEvent stopped = next();
  EXPECT_EQ(stopped.signal, SIGTERM);
  EXPECT_EQ(stopped.ended_unix_us, 0);
}

// Both have ended when the agent comes to look, which it could not before: it is stopped meanwhile.
TEST_F(AgentTest, OfTwoThatEndedMeanwhileTheFirstIsKnown) {
  const TaskId ids[] = {{TaskRole::kWorker, 0}, {TaskRole::kWorker, 1}};
  std::map<TaskId, pid_t> programs;
  std::vector<TaskAddress> view;
  for (const TaskId id : ids) {
    stream_->send(start_line(spec("exec sleep 1000", id)));
    view.push_back({id, arrives(id)});
  }
  release(view);
  for (size_t i = 0; i < 2; ++i) {
    const TaskEvent running = next();
    programs[running.task] = static_cast<pid_t>(running.pid);
  }
  const auto is_zombie = [](pid_t pid) {
    std::ifstream stat(fmt::format("/proc/{}/stat", pid));
    const std::string text(std::istreambuf_iterator<char>(stat), {});
    return text.find(") Z ") != std::string::npos;
  };
  ASSERT_EQ(::kill(agent_, SIGSTOP), 0);
  for (const TaskId id : {ids[1], ids[0]}) {
    ASSERT_EQ(::kill(programs[id], SIGKILL), 0);
    const auto deadline = steady_clock::now() + kAgentPatience;
    while (!is_zombie(programs[id]) && steady_clock::now() < deadline) ::usleep(1000);
  }
  ASSERT_EQ(::kill(agent_, SIGCONT), 0);
  std::map<TaskId, int64_t> ended;
  for (size_t i = 0; i < 2; ++i) {
    const TaskEvent exited = next();
    EXPECT_EQ(exited.signal, SIGKILL);
    ended[exited.task] = exited.ended_unix_us;
  }
  EXPECT_LT(ended[ids[1]], ended[ids[0]]);
}

TEST_F(AgentTest, ThatTheMachineIsTakenAwayIsToldAndLiesInAFileForTheProgram) {
  std::atomic<bool> taken = false;
  const auto at =
      std::chrono::time_point_cast<std::chrono::seconds>(std::chrono::system_clock::now()) + std::chrono::seconds(120);
  ScriptedHttpServer metadata([&](const std::string& request) {
    using Server = ScriptedHttpServer;
    if (request.starts_with("PUT /latest/api/token ")) return Server::text(200, "tok");
    if (request.find("x-aws-ec2-metadata-token: tok") == std::string::npos) return Server::text(401, "");
    if (!taken || !request.starts_with("GET /latest/meta-data/spot/instance-action ")) return Server::text(404, "");
    return Server::text(200, fmt::format(R"({{"action": "terminate", "time": "{:%Y-%m-%dT%H:%M:%SZ}"}})",
                                         fmt::gmtime(std::chrono::system_clock::to_time_t(at))));
  });
  TaskSpec task = spec("trap 'cat \"$PSCLOUD_NOTICE\"; exit 7' TERM; echo up; while :; do sleep 0.05; done");
  task.spot = true;
  task.stop_grace_ms = 10000;
  task.environment = {{"AWS_EC2_METADATA_SERVICE_ENDPOINT", metadata.url()}, {"AWS_EC2_METADATA_DISABLED", ""}};
  run(task);
  says("up");
  taken = true;
  const TaskEvent notice = next();
  EXPECT_EQ(notice.kind, Kind::kNotice);
  EXPECT_EQ(notice.text, "terminate");
  EXPECT_GT(notice.seconds, 90);
  EXPECT_LE(notice.seconds, 120);
  stream_->send(stop_line(kWorker, false));
  const TaskEvent exited = next();
  EXPECT_EQ(exited.kind, Kind::kExited);
  EXPECT_EQ(exited.code, 7);
  EXPECT_THAT(lines_, testing::Contains(std::to_string(at.time_since_epoch().count())));
}

TEST_F(AgentTest, ATaskArrivesRunsAndExits) {
  stream_->send(start_line(spec("echo out; echo err >&2; printf last; exit 3")));
  const Address address = arrives();
  EXPECT_EQ(address.host, "127.0.0.1");
  EXPECT_GE(address.port, 20000);
  release({{kWorker, address}});
  const TaskEvent running = next();
  EXPECT_EQ(running.kind, Kind::kRunning);
  EXPECT_GT(running.pid, 0);
  const TaskEvent exited = next();
  EXPECT_EQ(exited.kind, Kind::kExited);
  EXPECT_EQ(exited.code, 3);
  EXPECT_EQ(exited.signal, 0);
  EXPECT_THAT(lines_, testing::UnorderedElementsAre("out", "err", "last"));
  stream_->close();
  EXPECT_EQ(agent_exit(), 3);
  expect_nothing_left();
}

TEST_F(AgentTest, ArgumentsAndVariablesArriveAsTheyAre) {
  TaskSpec task = spec("");
  task.command = {
      "/bin/sh",    "-c",  "printf '%s\\n' \"$@\" \"$GIVEN\" \"$SECRET_FILE\" \"[$SECRET]\"; cat \"$SECRET_FILE\"",
      "sh",         "a b", "'\"$x*\\",
      "two\nlines", ""};
  task.environment = {{"GIVEN", "x\n\"y\""}, {"SECRET", "seen"}};
  task.files = {{"keys/secret", "hidden\n", "SECRET_FILE", false}};
  run(task);
  EXPECT_EQ(next().code, 0);
  const std::string path = task.private_folder + "/keys/secret";
  EXPECT_THAT(lines_, ElementsAre("a b", "'\"$x*\\", "two", "lines", "", "x", "\"y\"", path, "[]", "hidden"));
}

TEST_F(AgentTest, EachTaskOfAnAgentHasItsOwnPortAndEnd) {
  const TaskId server{TaskRole::kServer, 0};
  stream_->send(start_line(spec("exit 0")));
  const Address worker_at = arrives();
  stream_->send(start_line(spec("trap 'exit 7' TERM; echo up; while :; do sleep 0.01; done", server)));
  const Address server_at = arrives(server);
  EXPECT_NE(worker_at, server_at);
  release({{server, server_at}, {kWorker, worker_at}});
  int running = 0;
  while (running < 3) {  // two begin, one ends
    const TaskEvent event = next();
    EXPECT_EQ(event.kind == Kind::kExited ? event.task : kWorker, kWorker);
    ++running;
  }
  says("up");
  stream_->send(stop_line(server, false));
  const TaskEvent exited = next();
  EXPECT_EQ(exited.task, server);
  EXPECT_EQ(exited.code, 7);
}

TEST_F(AgentTest, WhatATaskUsesAndWhatItsNodesSayIsTold) {
  run(spec("echo up; sleep 1000"));
  says("up");
  HttpRoutes routes;
  routes["/status"] = [] { return HttpReply{.body = R"({"role":"server","samples":{"keys":7}})"}; };
  // As a node does that the task runs.
  const auto node =
      HttpServer::start(fmt::format("unix:{}/{}/", (folder_ / kWorker.text()).string(), kStatusFolder), routes);
  ASSERT_TRUE(node) << node.error().message;
  const auto deadline = steady_clock::now() + kAgentPatience;
  std::map<std::string, double> figures;
  std::string status;
  while (steady_clock::now() < deadline && (status.empty() || !figures.contains("memory_bytes"))) {
    std::vector<pollfd> polled;
    stream_->add_to(polled);
    ::poll(polled.data(), polled.size(), 100);
    std::vector<JsonValue> answers;
    stream_->read(100, events_, answers);
    for (const TaskEvent& event : std::exchange(events_, {})) {
      ASSERT_EQ(event.kind, Kind::kSample);
      EXPECT_EQ(event.task, kWorker);
      for (const auto& [name, value] : event.figures) figures[name] = value;
      if (!event.text.empty()) status = event.text;
    }
  }
  EXPECT_EQ(status, R"({"role":"server","samples":{"keys":7}})");
  EXPECT_EQ(figures["keys"], 7);
  EXPECT_GT(figures["memory_bytes"], 1000);
  EXPECT_TRUE(figures.contains("cpu_percent"));
}

TEST_F(AgentTest, WhereNodesServeTheirStatusIsTheUsersChoiceFirst) {
  TaskSpec task = spec("echo $PSCLOUD_HTTP");
  run(task);
  EXPECT_EQ(next().code, 0);
  task.environment = {{"PSCLOUD_HTTP", "off"}};
  run(task);
  EXPECT_EQ(next().code, 0);
  EXPECT_THAT(lines_, ElementsAre(fmt::format("unix:{}/{}/", task.private_folder, kStatusFolder), "off"));
}

TEST_F(AgentTest, WhoDoesNotHearIsKilledAfterItsGrace) {
  run(spec("trap '' TERM; echo up; while :; do sleep 0.01; done"));
  says("up");
  stream_->send(stop_line(kWorker, false));
  EXPECT_EQ(next().signal, SIGKILL);
}

TEST_F(AgentTest, WhatAProgramLeavesBehindEndsWithIt) {
  // One in its group, one that left it, and one that also threw its environment away.
  run(
      spec("sleep 1000 & setsid sleep 1000 & setsid env -i sleep 1000 & setsid sh -c 'sleep 1000 & sleep 1000' & "
           "sleep 0.1; echo up"));
  EXPECT_EQ(next().kind, Kind::kExited);
  expect_nothing_left();
  const auto orphans = [&] {
    int count = 0;
    for (const auto& process : fs::directory_iterator("/proc")) {
      std::ifstream stat(process.path() / "stat");
      std::string text;
      std::getline(stat, text);
      count += text.find(fmt::format(") S {} ", agent_)) != std::string::npos;
    }
    return count;
  };
  EXPECT_LE(orphans(), 1);  // the last one hides from the task, not from the agent's own end
  stream_->close();
  agent_exit();
}

TEST_F(AgentTest, TasksEndWhenTheLauncherIsGone) {
  run(spec("sleep 1000 & echo up; sleep 1000"));
  says("up");
  EXPECT_GE(marked().size(), 2u);
  stream_.reset();
  EXPECT_EQ(agent_exit(), 128 + SIGTERM);
  expect_nothing_left();
}

TEST_F(AgentTest, TasksEndWhenTheAgentIsTold) {
  run(spec("echo up; sleep 1000"));
  says("up");
  ::kill(agent_, SIGTERM);
  EXPECT_EQ(next().signal, SIGTERM);
  EXPECT_THAT(lines_, ElementsAre("up", "pscloud: the agent ends this task: got signal 15 (SIGTERM)"));
  agent_exit();
  expect_nothing_left();
}

TEST_F(AgentTest, AProgramDiesWithAnAgentThatIsKilled) {
  run(spec("echo up; exec sleep 1000"));
  says("up");
  ::kill(agent_, SIGKILL);
  agent_exit();
  const auto deadline = steady_clock::now() + kAgentPatience;
  while (!marked().empty() && steady_clock::now() < deadline) ::usleep(2000);
  EXPECT_EQ(marked().size(), 0u);
}

TEST_F(AgentTest, AProgramThatIsNotThereIsSaidAsAShellSaysIt) {
  TaskSpec task = spec("");
  task.command = {"no-such-program-anywhere"};
  stream_->send(start_line(task));
  release({{kWorker, arrives()}});
  EXPECT_EQ(next().code, 127);
  EXPECT_THAT(lines_, ElementsAre(HasSubstr("no-such-program-anywhere")));
}

TEST_F(AgentTest, AFolderThatIsNotThereIsNamed) {
  TaskSpec task = spec("true");
  task.folder = "/no/such/folder";
  stream_->send(start_line(task));
  release({{kWorker, arrives()}});
  EXPECT_EQ(next().code, 126);
  EXPECT_THAT(lines_, ElementsAre(HasSubstr("/no/such/folder")));
}

TEST_F(AgentTest, ATaskThatWaitsCanBeStopped) {
  stream_->send(start_line(spec("true")));
  arrives();
  stream_->send(stop_line(kWorker, false));
  EXPECT_EQ(next().kind, Kind::kExited);
  expect_nothing_left();
}

TEST_F(AgentTest, ATaskThatCannotBeginIsLost) {
  TaskSpec task = spec("true");
  task.private_folder = "/proc/no/folder";
  stream_->send(start_line(task));
  const TaskEvent event = next();
  EXPECT_EQ(event.kind, Kind::kLost);
  EXPECT_THAT(event.text, HasSubstr("/proc/no/folder"));
}

TEST_F(AgentTest, ThePortIsFreeForTheProgramAlone) {
  // Bound by the program without SO_REUSEADDR at once, as many do.
  TaskSpec task = spec("");
  task.command = {"python3", "-c",
                  "import os, socket; s = socket.socket(); a = os.environ['PSCLOUD_LISTEN'].rsplit(':', 1); "
                  "s.bind((a[0], int(a[1]))); s.listen(); print('bound', flush=True)"};
  run(task);
  EXPECT_EQ(next().code, 0);
  EXPECT_THAT(lines_, ElementsAre("bound"));
}

TEST_F(AgentTest, ManyLinesComeWholeThoughTheLauncherIsSlow) {
  run(
      spec("i=0; while [ $i -lt 20000 ]; do echo \"line $i of many, long enough to fill what lies between\"; "
           "i=$((i + 1)); done; head -c 200000 /dev/zero | tr '\\0' x"));
  ::usleep(200000);  // meanwhile everything between is full
  EXPECT_EQ(next().code, 0);
  ASSERT_EQ(lines_.size(), 20000u + 4);  // the last comes in pieces
  EXPECT_THAT(lines_[19999], HasSubstr("line 19999 "));
  EXPECT_EQ(lines_[20000].size(), kProgramLineMax);
}

TEST_F(AgentTest, WhatCannotBeUnderstoodEndsTheAgentAndItsTasks) {
  run(spec("echo up; sleep 1000"));
  says("up");
  stream_->send("{\"stop\": 1");
  EXPECT_EQ(agent_exit(), 128 + SIGTERM);
  expect_nothing_left();
}

TEST_F(AgentTest, SilenceIsTheLaunchersEnd) {
  stream_.reset();
  agent_exit();
  open_agent(300);
  run(spec("echo up; sleep 1000"));
  says("up");
  // One that was only held up hears why.
  EXPECT_EQ(next().signal, SIGTERM);
  EXPECT_THAT(lines_.back(), HasSubstr("the launcher has said nothing for"));
  EXPECT_EQ(agent_exit(), 128 + SIGTERM);
  expect_nothing_left();
}

}  // namespace
}  // namespace pscloud

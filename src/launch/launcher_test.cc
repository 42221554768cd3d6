#include "launch/launcher.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <sstream>

#include "launch/backend_fake.h"
#include "launch/run_report.h"

namespace pscloud {
namespace {

using Now = Supervisor::Now;

// Notes what passes between a launcher and its back end.
class NotedBackend final : public Backend {
 public:
  explicit NotedBackend(FakeBackend& inner) : inner_(inner) {}

  struct Note {
    Now at;
    std::string what;  // "stop", "kill", "release", "event", "clean"
    TaskId task;
    TaskEvent event = {};
  };

  Result<> check(const Plan& plan) override { return inner_.check(plan); }
  Result<> start(const Plan& plan, Ledger& ledger) override { return inner_.start(plan, ledger); }
  Result<> release(const ClusterView& view) override {
    notes.push_back({inner_.now(), "release", {}});
    return inner_.release(view);
  }
  Result<> stop(TaskId task, bool at_once) override {
    notes.push_back({inner_.now(), at_once ? "kill" : "stop", task});
    return inner_.stop(task, at_once);
  }
  Result<> restart(const Plan& plan, const PlannedTask& task, const Host& host, Ledger& ledger) override {
    notes.push_back({inner_.now(), "restart", task.spec.id});
    return inner_.restart(plan, task, host, ledger);
  }
  Result<std::vector<TaskEvent>> wait(Now deadline, int wake_fd) override {
    EXPECT_GT(deadline, inner_.now()) << "a wait must not be a spin";
    auto events = inner_.wait(deadline, wake_fd);
    for (const TaskEvent& event : *events) notes.push_back({inner_.now(), "event", event.task, event});
    return events;
  }
  Result<std::vector<std::string>> clean(const Plan& plan, Ledger& ledger) override {
    notes.push_back({inner_.now(), "clean", {}});
    return inner_.clean(plan, ledger);
  }
  Result<std::vector<std::string>> shell(const Plan& plan, TaskId task) override { return inner_.shell(plan, task); }

  std::vector<Note> notes;

 private:
  FakeBackend& inner_;
};

// Machines that are made up too: each wish is heard when it has been asked for often enough.
class FakeSupply final : public MachineSupply {
 public:
  FakeSupply(uint64_t seed, double gives) : random_(seed), gives_(gives) {}

  void ask(const std::string& host) override { wishes_.emplace_back(host, random_.below(200)); }
  News take() override {
    News news;
    std::erase_if(wishes_, [&](auto& wish) {
      if (wish.second-- > 0) return false;
      Result<Host> host = unavailable("there is none");
      if (random_.chance(gives_)) {
        host = Host{};
        host->name = host->address = fmt::format("new-{}", ++made_);
      }
      news.words.push_back("in the place of " + wish.first);
      news.offers.push_back({wish.first, std::move(host)});
      return true;
    });
    return news;
  }

 private:
  Random random_;
  const double gives_;
  int made_ = 0;
  std::vector<std::pair<std::string, uint64_t>> wishes_;
};

class LauncherTest : public testing::Test {
 protected:
  LauncherTest() {
    // Hundreds of ledgers, each line of which waits for the disk: not for a real one here.
    std::string name = (::access("/dev/shm", W_OK) == 0 ? "/dev/shm/" : testing::TempDir()) + "launcher-XXXXXX";
    home_ = ::mkdtemp(name.data());
    cluster_.target = "fake";
  }
  ~LauncherTest() override { std::filesystem::remove_all(home_); }

  static RoleSpec role(TaskRole role, std::vector<std::vector<std::string>> commands) {
    RoleSpec spec;
    spec.role = role;
    spec.count = static_cast<int>(commands.size());
    spec.commands = std::move(commands);
    return spec;
  }

  // A server, and workers that do as they are told.
  static Job job_of(std::vector<std::vector<std::string>> workers) {
    Job job;
    job.run = "clicks";
    job.roles = {role(TaskRole::kServer, {{"hang"}}), role(TaskRole::kWorker, std::move(workers))};
    job.arrive_timeout_ms = 60000;
    job.stop_grace_ms = 5000;
    return job;
  }

  // Runs it to its end, in a time that is made up.
  LaunchEnd run(const Job& job, uint64_t seed = 1) {
    auto made = new_run(home_, job, cluster_, false);
    EXPECT_TRUE(made) << made.error().message;
    name_ = made->folder.name();
    plan_ = made->plan;
    FakeBackend fake(cluster_, made->folder.path(), seed);
    NotedBackend backend(fake);
    LaunchOptions options;
    options.say = [this](std::string_view text) { said_.emplace_back(text); };
    options.now = [&fake] { return fake.now(); };
    options.make_supply = [&](const Cluster&) -> std::unique_ptr<MachineSupply> {
      return gives_ < 0 ? nullptr : std::make_unique<FakeSupply>(seed, gives_);
    };
    began_ = fake.now();
    auto end = launch(plan_, backend, made->folder, options);
    ended_ = fake.now();
    notes_ = std::move(backend.notes);
    EXPECT_TRUE(end) << end.error().message;
    return end ? *end : LaunchEnd{};
  }

  RunFolder folder() { return *RunFolder::open(home_, name_); }
  std::string file(const std::string& name) { return folder().read(name).value_or(""); }

  std::string home_;
  Cluster cluster_;
  std::string name_;
  Plan plan_;
  Now began_;
  Now ended_;
  std::vector<NotedBackend::Note> notes_;
  std::vector<std::string> said_;
  double gives_ = -1;  // how often the supply of machines has one; below 0: there is no supply
};

TEST_F(LauncherTest, WhatIsCopiedFirstIsNotTheTimeToArrive) {
  EXPECT_EQ(run(job_of({{"copy=70000", "exit=0"}})).outcome.kind, JobOutcome::Kind::kDone);
}

TEST_F(LauncherTest, AJobRunsToItsEndAndItsFolderKeepsEverything) {
  const LaunchEnd end =
      run(job_of({{"print=hello", "error=oh", "wait=100"}, {"print=**metrics_data: loss=0.5,auc=0.7"}}));
  EXPECT_EQ(end.exit_code, 0) << end.outcome.message;
  EXPECT_TRUE(end.left.empty());
  EXPECT_EQ(file("logs/worker-0.log"), "hello\noh\n");
  EXPECT_NE(file("metrics.csv").find("time,task,loss,auc\n"), std::string::npos);
  const auto report = look_at_run(folder());
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_STREQ(report->word(), "done");
  EXPECT_EQ(report->state.exit_code, 0);
  EXPECT_EQ(report->state.tasks[0].state, TaskState::kStopped);
  EXPECT_EQ(report->state.tasks[1].state, TaskState::kDone);
  EXPECT_TRUE(folder().is_settled());
  EXPECT_EQ(parse_plan(file("plan.json"))->tasks.size(), 3u);
}

TEST_F(LauncherTest, AFailureIsToldWithItsLastLines) {
  std::vector<std::string> words{"wait=10"};
  for (int i = 0; i < 20; ++i) words.push_back(fmt::format("print=line {}", i));
  words.push_back("error=no such key");
  words.push_back("exit=7");
  const LaunchEnd end = run(job_of({{"wait=1000", "exit=1"}, words}));
  EXPECT_EQ(end.exit_code, 1);
  EXPECT_EQ(end.outcome.message, "worker-1 on nowhere failed: exit code 7");
  ASSERT_EQ(end.last_lines.size(), 10u);
  EXPECT_EQ(end.last_lines.front(), "line 11");
  EXPECT_EQ(end.last_lines.back(), "no such key");
  EXPECT_EQ(folder().state()->root_cause, (TaskId{TaskRole::kWorker, 1}));
}

TEST_F(LauncherTest, OneOfEightThatNeverComesIsNamedAtTheDeadline) {
  std::vector<std::vector<std::string>> workers(8, {"hang"});
  workers[5] = {"never"};
  const LaunchEnd end = run(job_of(workers));
  EXPECT_EQ(end.exit_code, 3);
  EXPECT_EQ(end.outcome.message, "after 60 s only 8 of 9 have arrived; missing: worker-5 on nowhere");
  EXPECT_EQ(ended_ - began_, std::chrono::seconds(60));
  EXPECT_TRUE(std::ranges::find(said_, "8 of 9 have arrived; missing: worker-5 on nowhere") != said_.end());
}

TEST_F(LauncherTest, WhatTheCheckFindsIsToldAndNothingIsMade) {
  cluster_.options = {{"check", "node7: no route to host"}};
  auto made = new_run(home_, job_of({{"exit=0"}}), cluster_, false);
  ASSERT_TRUE(made) << made.error().message;
  FakeBackend fake(cluster_, made->folder.path(), 1);
  const auto end = launch(made->plan, fake, made->folder, {});
  ASSERT_FALSE(end);
  EXPECT_EQ(end.error().message, "node7: no route to host");
  EXPECT_STREQ(look_at_run(made->folder)->word(), "missing");
  EXPECT_TRUE(made->folder.is_settled());
  EXPECT_FALSE(std::filesystem::exists(made->folder.path("ledger.jsonl")));
}

// A job by chance: up to six workers and three servers, each of which may be late, slow, deaf, fail, hang or vanish.
std::vector<std::string> chance_words(Random& random, bool ends) {
  std::vector<std::string> words{"wait=0"};
  if (random.chance(0.3)) words.push_back(fmt::format("late={}", random.below(70000)));
  if (random.chance(0.03)) words.push_back("never");
  if (random.chance(0.03)) words.push_back("absent");
  if (random.chance(0.2)) words.push_back(fmt::format("slow={}", random.below(3000)));
  if (random.chance(0.1)) words.push_back("deaf");
  if (random.chance(0.05)) words.push_back("undead");
  for (uint64_t i = random.below(4); i > 0; --i) {
    words.push_back(random.chance(0.5) ? "print=x" : fmt::format("wait={}", random.below(2000)));
  }
  if (random.chance(0.1)) {
    words.push_back(random.chance(0.5) ? fmt::format("exit={}", 1 + random.below(5)) : "lose");
  } else if (random.chance(0.1)) {
    words.push_back("signal=11");
  } else if (!ends) {
    words.push_back("hang");
  }
  return words;
}

Job chance_job(Random& random) {
  Job job;
  job.run = "chance";
  job.arrive_timeout_ms = 60000;
  job.stop_grace_ms = static_cast<int>(random.below(10000));
  job.run_timeout_ms = random.chance(0.2) ? 1 + static_cast<int>(random.below(5000)) : 0;
  job.worker_may_fail = random.chance(0.3);
  for (const TaskRole which : {TaskRole::kServer, TaskRole::kWorker}) {
    RoleSpec spec;
    spec.role = which;
    spec.count = static_cast<int>(which == TaskRole::kWorker ? 1 + random.below(6) : random.below(4));
    for (int i = 0; i < spec.count; ++i) spec.commands.push_back(chance_words(random, which == TaskRole::kWorker));
    if (spec.count > 0) job.roles.push_back(std::move(spec));
  }
  const int workers = job.roles.back().count;
  if (random.chance(0.3)) job.workers_min = 1 + static_cast<int>(random.below(static_cast<uint64_t>(workers)));
  return job;
}

bool is_end(const NotedBackend::Note& note) {
  return note.what == "event" &&
         (note.event.kind == TaskEvent::Kind::kExited || note.event.kind == TaskEvent::Kind::kLost);
}

bool is_fault(const NotedBackend::Note& note) {
  return is_end(note) && (note.event.kind == TaskEvent::Kind::kLost || note.event.code != 0 || note.event.signal != 0);
}

TEST_F(LauncherTest, WhateverTasksDoTheJobEndsAndNothingIsLeft) {
  const char* wanted = std::getenv("PSCLOUD_SEED");
  std::vector<uint64_t> seeds(200);
  std::iota(seeds.begin(), seeds.end(), uint64_t{1});
  if (wanted != nullptr) seeds = {std::strtoull(wanted, nullptr, 10)};
  std::map<int, int> codes;
  for (const uint64_t seed : seeds) {
    SCOPED_TRACE(fmt::format("PSCLOUD_SEED={}", seed));
    Random random(seed);
    const Job job = chance_job(random);
    const LaunchEnd end = run(job, seed);
    ++codes[end.exit_code];
    // Every task has ended, in bounded time, and all of it is gone.
    const RunState state = *folder().state();
    for (const TaskStatus& task : state.tasks) EXPECT_TRUE(task.ended()) << task.id.text();
    const std::chrono::milliseconds longest(60000 + 70000 + 8000 + job.stop_grace_ms);
    EXPECT_LE(ended_ - began_, longest + Supervisor::kStopSlack + Supervisor::kKillWait);
    EXPECT_TRUE(folder().is_settled());
    EXPECT_TRUE(Ledger::read(folder().path("ledger.jsonl"))->empty());
    EXPECT_TRUE(std::filesystem::is_empty(folder().path("fake")));

    const auto first_stop = std::ranges::find_if(
        notes_, [](const auto& note) { return note.what == "stop" || note.what == "kill" || note.what == "clean"; });
    // The first fault by time is the cause. A worker's, if that may be, only if none is left.
    if (end.outcome.root_cause) {
      const auto first_fault = std::ranges::find_if(notes_, [&](const auto& note) {
        return is_fault(note) && (!job.worker_may_fail || note.task.role != TaskRole::kWorker ||
                                  end.outcome.root_cause->role == TaskRole::kWorker);
      });
      ASSERT_NE(first_fault, notes_.end());
      EXPECT_EQ(*end.outcome.root_cause, first_fault->task);
    } else if (!job.worker_may_fail) {
      const auto before = [&](const auto& note) { return is_fault(note) && note.at < first_stop->at; };
      EXPECT_TRUE(std::ranges::none_of(notes_, before)) << end.outcome.message;
    }
    // Who is stopped is stopped in the very moment of the cause, all at once.
    if (end.exit_code == 0) {
      EXPECT_TRUE(std::ranges::any_of(notes_, [&](const auto& note) {
        return is_end(note) && note.task.role == TaskRole::kWorker && note.at == first_stop->at;
      }));
    }
    for (auto note = first_stop; note != notes_.end(); ++note) {
      if (note->what == "stop") {
        EXPECT_EQ(note->at, first_stop->at);
      }
      EXPECT_NE(note->what, "release") << "nobody begins when all are being stopped";
    }
    // Nothing is done after the outcome but cleaning up.
    EXPECT_EQ(notes_.back().what, "clean");
    EXPECT_EQ(std::ranges::count(notes_, "clean", &NotedBackend::Note::what), 1);
  }
  if (wanted == nullptr) {
    EXPECT_EQ(codes.size(), 3u) << "the seeds should try each outcome";
  }
}

Host host_called(const std::string& name, TaskRole role) {
  Host host;
  host.name = host.address = name;
  host.roles = {role};
  return host;
}

TEST_F(LauncherTest, AWorkerWhoseMachineIsTakenAwayGoesToAnIdleOneAndTheFolderTellsIt) {
  cluster_.hosts = {host_called("s", TaskRole::kServer), host_called("a", TaskRole::kWorker),
                    host_called("b", TaskRole::kWorker), host_called("idle", TaskRole::kWorker)};
  Job job = job_of({{"wait=30000"}, {"print=first", "notice=120", "slow=2000", "hang", "then", "print=second"}});
  job.worker_may_fail = job.late_workers = true;
  const LaunchEnd end = run(job);
  EXPECT_EQ(end.exit_code, 0) << end.outcome.message;
  EXPECT_EQ(file("logs/worker-1.log"), "first\nsecond\n");
  const TaskStatus moved = folder().state()->tasks[2];
  EXPECT_EQ(moved.host, "idle");
  EXPECT_EQ(moved.attempt, 1);
  EXPECT_EQ(moved.state, TaskState::kDone);
  EXPECT_EQ(parse_plan(file("plan.json"))->tasks[2].host, "idle");
  EXPECT_TRUE(std::ranges::find(said_, "worker-1 on b is drained") != said_.end());
}

TEST_F(LauncherTest, AMachineThatIsMadeStandsInTheRunsFolderForWhoCleansUp) {
  cluster_.hosts = {host_called("s", TaskRole::kServer), host_called("a", TaskRole::kWorker)};
  gives_ = 1;
  Job job = job_of({{"notice=120", "hang", "then", "wait=10"}});
  job.worker_may_fail = job.late_workers = true;
  EXPECT_EQ(run(job).exit_code, 0);
  EXPECT_EQ(parse_cluster_file(file("cluster.json"), "cluster.json")->hosts.back().name, "new-1");
  EXPECT_TRUE(std::ranges::find(said_, "in the place of a") != said_.end());
}

// Up to six workers, whose machines may be taken away at any time, more than once; some are slow to end, and new
// machines come late or not at all.
Job fleeting_job(Random& random) {
  Job job;
  job.run = "fleeting";
  job.arrive_timeout_ms = 60000;
  job.stop_grace_ms = static_cast<int>(random.below(10000));
  job.worker_may_fail = random.chance(0.9);
  job.late_workers = random.chance(0.8);
  RoleSpec server;
  server.role = TaskRole::kServer;
  server.commands = {{"hang"}};
  RoleSpec workers;
  workers.count = static_cast<int>(1 + random.below(6));
  for (int i = 0; i < workers.count; ++i) {
    std::vector<std::string> words{fmt::format("wait={}", random.below(2000))};
    if (random.chance(0.6)) words.push_back(fmt::format("notice={}", random.below(120)));
    if (random.chance(0.2)) words.push_back(fmt::format("slow={}", random.below(3000)));
    if (random.chance(0.1)) words.push_back("deaf");
    if (random.chance(0.1)) words.push_back("undead");
    words.push_back(fmt::format("wait={}", random.below(20000)));
    if (random.chance(0.1)) words.push_back(random.chance(0.5) ? "lose" : "exit=3");
    words.insert(words.end(), {"then", fmt::format("late={}", random.below(70000))});
    if (random.chance(0.1)) words.push_back("never");
    if (random.chance(0.2)) words.push_back("notice=120");
    words.push_back(fmt::format("wait={}", random.below(5000)));
    workers.commands.push_back(std::move(words));
  }
  job.roles = {server, workers};
  return job;
}

TEST_F(LauncherTest, WhateverMachinesAreTakenAwayTheJobEndsAndNothingIsLeft) {
  std::map<int, int> codes;
  size_t restarts = 0;
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const Job job = fleeting_job(random);
    cluster_.hosts = {host_called("s", TaskRole::kServer)};
    for (int i = 0; i < job.roles[1].count; ++i) {
      cluster_.hosts.push_back(host_called(fmt::format("w{}", i), TaskRole::kWorker));
    }
    gives_ = 0.7;
    const LaunchEnd end = run(job, seed);
    ++codes[end.exit_code];
    EXPECT_LE(ended_ - began_, std::chrono::minutes(10));
    EXPECT_TRUE(folder().is_settled());
    EXPECT_TRUE(Ledger::read(folder().path("ledger.jsonl"))->empty());
    EXPECT_TRUE(std::filesystem::is_empty(folder().path("fake")));
    bool any_done = false;
    const RunState state = *folder().state();
    for (const TaskStatus& task : state.tasks) {
      EXPECT_TRUE(task.ended()) << task.id.text();
      any_done = any_done || task.state == TaskState::kDone;
      const auto begun = std::ranges::count_if(
          notes_, [&](const auto& note) { return note.what == "restart" && note.task == task.id; });
      EXPECT_EQ(begun, task.attempt) << task.id.text();
      restarts += static_cast<size_t>(begun);
      EXPECT_TRUE(begun == 0 || (job.late_workers && job.worker_may_fail)) << task.id.text();
    }
    EXPECT_EQ(end.exit_code == 0, any_done && !(end.outcome.kind == JobOutcome::Kind::kFailed));
    // A task is never there twice.
    std::map<TaskId, bool> there;
    for (const auto& note : notes_) {
      if (note.what == "event" && note.event.kind == TaskEvent::Kind::kRunning) there[note.task] = true;
      if (is_end(note)) there[note.task] = false;
      const bool undead = note.what == "kill";
      if (undead) there[note.task] = false;  // it is given up
      EXPECT_FALSE(note.what == "restart" && there[note.task]) << note.task.text();
    }
  }
  EXPECT_EQ(codes.size(), 3u) << "the seeds should try each outcome";
  EXPECT_GT(restarts, 50u);
}

TEST_F(LauncherTest, AKilledLauncherIsToldAboutAndCleanedUpAfterWhereverItDied) {
  for (const char* step : {"check", "start", "release", "stop", "clean"}) {
    SCOPED_TRACE(step);
    cluster_.options = {{"die", step}};
    const Job job = job_of({{"wait=20"}});
    EXPECT_EXIT(
        {
          auto made = new_run(home_, job, cluster_, false);
          FakeBackend fake(cluster_, made->folder.path(), 1);
          LaunchOptions options;
          options.now = [&fake] { return fake.now(); };
          (void)launch(made->plan, fake, made->folder, options);
        },
        testing::KilledBySignal(SIGKILL), "");
    cluster_.options.clear();
    const auto runs = list_runs(home_);
    ASSERT_FALSE(runs.empty());
    EXPECT_FALSE(runs.front().settled);
    RunFolder left = *RunFolder::open(home_, runs.front().name);
    EXPECT_FALSE(left.is_watched());
    const auto report = look_at_run(left);
    ASSERT_TRUE(report) << report.error().message;
    EXPECT_STREQ(report->word(), "lost");
    EXPECT_EQ(report->things, std::string_view(step) == "check"   ? 0u
                              : std::string_view(step) == "start" ? 1u
                              : std::string_view(step) == "clean" ? 0u
                              : std::string_view(step) == "stop"  ? 1u
                                                                  : 2u);
    // The folder says how it died: who cleans up must not die of it too.
    ASSERT_TRUE(left.write("cluster.json", cluster_json(cluster_)));
    const auto removed = clean_run(left);
    ASSERT_TRUE(removed) << removed.error().message;
    EXPECT_TRUE(removed->empty());
    EXPECT_TRUE(left.is_settled());
    EXPECT_TRUE(!std::filesystem::exists(left.path("fake")) || std::filesystem::is_empty(left.path("fake")));
    EXPECT_STREQ(look_at_run(left)->word(), "lost");
    EXPECT_TRUE(clean_run(left)) << "once more does no harm";
  }
}

TEST_F(LauncherTest, SamplesStandInTheRunsFolderAndChangeNothingElse) {
  const LaunchEnd end = run(job_of({{"cpu=50", "print=**metrics_data: loss=0.5", "wait=3000", "cpu=25"}}));
  EXPECT_EQ(end.exit_code, 0);
  const std::string samples = file("samples.csv");
  EXPECT_NE(samples.find(",worker-0,cpu_percent,50\n"), std::string::npos) << samples;
  EXPECT_NE(samples.find(",worker-0,loss,0.5\n"), std::string::npos) << samples;
  EXPECT_NE(samples.find(",worker-0,cpu_percent,25\n"), std::string::npos) << samples;
}

TEST_F(LauncherTest, ARunTellsWhatItCosts) {
  cluster_.cost_usd_per_hour = 3.6e6;  // a dollar each millisecond
  run(job_of({{"wait=10"}}));
  const RunState state = *folder().state();
  EXPECT_EQ(state.cost_usd_per_hour, 3.6e6);
  EXPECT_NEAR(state.cost_usd(unix_ms_now() + 1000000), static_cast<double>(state.ended_unix_ms - state.began_unix_ms),
              1e-6);
  EXPECT_NE(file("state.json").find("\"cost_usd\":"), std::string::npos);
}

TEST_F(LauncherTest, ARunOfUnknownCostSaysNothingOfIt) {
  run(job_of({{"wait=10"}}));
  EXPECT_EQ(file("state.json").find("cost"), std::string::npos);
}

}  // namespace
}  // namespace pscloud

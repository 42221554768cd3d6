#include "launch/supervisor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>

namespace pscloud {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ActionKind = Supervisor::Action::Kind;

constexpr TaskId kServer0{TaskRole::kServer, 0};
constexpr TaskId kWorker0{TaskRole::kWorker, 0};
constexpr TaskId kWorker1{TaskRole::kWorker, 1};

class SupervisorTest : public testing::Test {
 protected:
  void begin(int servers, int workers) {
    plan_.job = "j1";
    plan_.run = "clicks";
    for (int i = 0; i < servers; ++i) add({TaskRole::kServer, i}, false);
    for (int i = 0; i < workers; ++i) add({TaskRole::kWorker, i}, true);
    plan_.arrive_timeout_ms = 60000;
    plan_.stop_grace_ms = 5000;
    supervisor_.emplace(plan_, now_);
  }
  void add(TaskId id, bool ends) {
    PlannedTask task;
    task.spec.id = id;
    task.ends_job = ends;
    plan_.tasks.push_back(task);
  }

  // Actions in short: "release 3", "stop server-0", "kill ...", "say ...".
  std::vector<std::string> texts(const std::vector<Supervisor::Action>& actions) const {
    std::vector<std::string> result;
    for (const auto& action : actions) {
      switch (action.kind) {
        case ActionKind::kRelease: result.push_back(fmt::format("release {}", action.view.tasks.size())); break;
        case ActionKind::kStop: result.push_back("stop " + action.task.text()); break;
        case ActionKind::kKill: result.push_back("kill " + action.task.text()); break;
        case ActionKind::kSay: result.push_back("say " + action.text); break;
        case ActionKind::kFindMachine: result.push_back(fmt::format("find {}", action.task.text())); break;
        case ActionKind::kRestart:
          result.push_back(fmt::format("restart {} {}", action.task.text(), action.host));
          break;
      }
    }
    return result;
  }
  std::vector<std::string> event(TaskEvent event) { return texts(supervisor_->on_event(event, now_)); }
  std::vector<std::string> arrive(TaskId id) {
    return event({.kind = TaskEvent::Kind::kArrived, .task = id, .host = "h", .address = {"h", 1}});
  }
  std::vector<std::string> exits(TaskId id, int code, int signal = 0) {
    return event({.kind = TaskEvent::Kind::kExited, .task = id, .code = code, .signal = signal});
  }
  std::vector<std::string> ends(TaskId id, int code, int64_t unix_us) {
    return event({.kind = TaskEvent::Kind::kExited, .task = id, .code = code, .ended_unix_us = unix_us});
  }
  // On a machine of its own, whose clock said `clock`; it is heard of now.
  std::vector<std::string> ends_there(TaskId id, milliseconds clock, milliseconds ago, milliseconds late) {
    return event({.kind = TaskEvent::Kind::kExited,
                  .task = id,
                  .host = "host-of-" + id.text(),
                  .code = 5,
                  .ended_unix_us = std::chrono::microseconds(clock).count(),
                  .ended_ago = ago,
                  .heard_late = late});
  }
  std::vector<std::string> time_passes(milliseconds time) {
    now_ += time;
    return texts(supervisor_->on_time(now_));
  }
  void all_run() {
    for (const PlannedTask& task : plan_.tasks) arrive(task.spec.id);
    for (const PlannedTask& task : plan_.tasks) event({.kind = TaskEvent::Kind::kRunning, .task = task.spec.id});
  }
  std::vector<std::string> notice(TaskId id) {
    return event({.kind = TaskEvent::Kind::kNotice, .task = id, .text = "terminate", .seconds = 118});
  }
  std::vector<std::string> machine(TaskId id, const std::string& host, const std::string& why = "") {
    return texts(supervisor_->on_machine(id, host, why, now_));
  }
  // One whose workers are replaced while it runs.
  void begin_elastic(int workers) {
    begin(1, workers);
    plan_.worker_may_fail = plan_.late_workers = true;
    all_run();
  }
  TaskState state(TaskId id) const { return std::ranges::find(supervisor_->tasks(), id, &TaskStatus::id)->state; }

  using Texts = std::vector<std::string>;
  Plan plan_;
  Supervisor::Now now_{std::chrono::hours(1)};
  std::optional<Supervisor> supervisor_;
};

TEST_F(SupervisorTest, AllAreReleasedTogetherAndServersStoppedWithTheLastWorker) {
  begin(1, 2);
  EXPECT_EQ(arrive(kServer0), Texts{});
  EXPECT_EQ(arrive(kWorker1), Texts{});
  EXPECT_EQ(supervisor_->waiting_for(), "2 of 3 have arrived; missing: worker-0");
  EXPECT_EQ(arrive(kWorker0), Texts{"release 3"});
  EXPECT_EQ(supervisor_->waiting_for(), "");
  EXPECT_EQ(exits(kWorker0, 0), Texts{});
  EXPECT_EQ(exits(kWorker1, 0), Texts{"stop server-0"});
  EXPECT_FALSE(supervisor_->outcome());
  EXPECT_EQ(exits(kServer0, 0, SIGTERM), Texts{});
  ASSERT_TRUE(supervisor_->outcome());
  EXPECT_EQ(supervisor_->outcome()->kind, JobOutcome::Kind::kDone);
  EXPECT_EQ(state(kServer0), TaskState::kStopped);
  EXPECT_EQ(state(kWorker0), TaskState::kDone);
}

TEST_F(SupervisorTest, AViewIsInTheOrderOfTasksHoweverTheyCame) {
  begin(1, 2);
  arrive(kWorker1);
  arrive(kWorker0);
  const auto actions = supervisor_->on_event(
      {.kind = TaskEvent::Kind::kArrived, .task = kServer0, .host = "h", .address = {"s", 9}}, now_);
  ASSERT_EQ(actions.size(), 1u);
  EXPECT_TRUE(std::ranges::is_sorted(actions[0].view.tasks, {}, &TaskAddress::id));
  EXPECT_EQ(actions[0].view.job, "j1");
  EXPECT_EQ(actions[0].view.find(kServer0)->text(), "s:9");
}

TEST_F(SupervisorTest, TheFirstFailureIsTheCauseAndWhatFollowsIsNot) {
  begin(1, 2);
  all_run();
  EXPECT_EQ(exits(kWorker1, 7),
            (Texts{"say worker-1 on h failed: exit code 7; stopping the rest", "stop server-0", "stop worker-0"}));
  exits(kWorker0, 1);
  exits(kServer0, 0, SIGSEGV);
  ASSERT_TRUE(supervisor_->outcome());
  EXPECT_EQ(supervisor_->outcome()->kind, JobOutcome::Kind::kFailed);
  EXPECT_EQ(supervisor_->outcome()->root_cause, kWorker1);
  EXPECT_EQ(supervisor_->outcome()->message, "worker-1 on h failed: exit code 7");
  EXPECT_EQ(state(kWorker0), TaskState::kStopped);
  EXPECT_EQ(state(kWorker1), TaskState::kFailed);
}

// A program that loses its peer often ends right after it, and may be heard of first.
TEST_F(SupervisorTest, TheCauseIsWhoEndedFirstNotWhoWasHeardOfFirst) {
  begin(1, 2);
  all_run();
  ends(kWorker0, 5, 2000);
  EXPECT_EQ(supervisor_->decided()->root_cause, kWorker0);
  EXPECT_EQ(ends(kWorker1, 7, 1000),
            std::vector<std::string>{"say worker-1 on h failed: exit code 7, before worker-0 did"});
  EXPECT_EQ(exits(kServer0, 0, SIGTERM).size(), 0u);
  ASSERT_TRUE(supervisor_->outcome());
  EXPECT_EQ(supervisor_->outcome()->root_cause, kWorker1);
  EXPECT_EQ(supervisor_->outcome()->message, "worker-1 on h failed: exit code 7");
  EXPECT_EQ(supervisor_->tasks()[2].state, TaskState::kFailed);
  EXPECT_EQ(supervisor_->tasks()[0].state, TaskState::kStopped);
}

// Its lines took a while to come to their end.
TEST_F(SupervisorTest, WhoEndedFirstIsTheCauseThoughClocksOfMachinesDiffer) {
  for (const milliseconds wrong : {milliseconds(-2000), milliseconds(0), milliseconds(2000)}) {
    plan_.tasks.clear();
    begin(1, 2);
    all_run();
    // Server 0 ends at 10000, worker 0 because of it at 10020.
    ends_there(kWorker0, milliseconds(10020) + wrong, milliseconds(1), milliseconds(300));
    now_ += milliseconds(500);
    EXPECT_EQ(ends_there(kServer0, milliseconds(10000), milliseconds(521), milliseconds(300)).size(), 1u);
    EXPECT_EQ(supervisor_->decided()->root_cause, kServer0) << wrong.count();
  }
}

TEST_F(SupervisorTest, AClockThatIsBehindMakesNobodyTheCause) {
  begin(1, 2);
  all_run();
  ends_there(kServer0, milliseconds(10000), milliseconds(1), milliseconds(300));
  now_ += milliseconds(20);
  EXPECT_TRUE(ends_there(kWorker0, milliseconds(8020), milliseconds(1), milliseconds(300)).empty());
  EXPECT_EQ(supervisor_->decided()->root_cause, kServer0);
}

// Where machines are looked at only now and then, and their clocks can be right, these tell more.
TEST_F(SupervisorTest, OfTwoThatAreHeardOfTogetherTheClocksTellWhoWasFirst) {
  begin(1, 2);
  all_run();
  ends_there(kWorker0, milliseconds(10020), milliseconds(5), milliseconds(300));
  EXPECT_EQ(ends_there(kServer0, milliseconds(10000), milliseconds(2), milliseconds(300)).size(), 1u);
  EXPECT_EQ(supervisor_->decided()->root_cause, kServer0);
}

TEST_F(SupervisorTest, WhoEndedLaterOrWellOrWasToldToIsNoCause) {
  begin(1, 4);
  all_run();
  ends(kWorker0, 5, 2000);
  EXPECT_TRUE(ends(kWorker1, 7, 3000).empty());
  EXPECT_TRUE(ends({TaskRole::kWorker, 2}, 0, 1000).empty());
  EXPECT_TRUE(ends({TaskRole::kWorker, 3}, 7, 0).empty());
  exits(kServer0, 0, SIGTERM);
  EXPECT_EQ(supervisor_->outcome()->root_cause, kWorker0);
}

TEST_F(SupervisorTest, OfWorkersThatMayFailTheFirstByTimeIsTheCauseToo) {
  plan_.worker_may_fail = true;
  begin(0, 2);
  all_run();
  ends(kWorker0, 5, 2000);
  ends(kWorker1, 7, 1000);
  EXPECT_EQ(supervisor_->outcome()->root_cause, kWorker1);
}

TEST_F(SupervisorTest, AServerThatDiesIsACauseToo) {
  begin(1, 1);
  all_run();
  exits(kServer0, 0, SIGKILL);
  exits(kWorker0, 0, SIGTERM);
  EXPECT_EQ(supervisor_->outcome()->message, "server-0 on h failed: signal 9 (SIGKILL)");
  EXPECT_EQ(supervisor_->tasks()[0].code, 137);
}

TEST_F(SupervisorTest, AServerThatEndsByItselfIsDone) {
  begin(1, 1);
  all_run();
  EXPECT_EQ(exits(kServer0, 0), Texts{});
  EXPECT_EQ(exits(kWorker0, 0), Texts{});
  EXPECT_EQ(supervisor_->outcome()->kind, JobOutcome::Kind::kDone);
}

TEST_F(SupervisorTest, WhoIsMissingIsSaidWhileWaitingAndNamedAtTheDeadline) {
  begin(1, 2);
  arrive(kServer0);
  arrive(kWorker0);
  EXPECT_EQ(supervisor_->next_deadline(), now_ + seconds(1));
  EXPECT_EQ(time_passes(seconds(1)), Texts{"say 2 of 3 have arrived; missing: worker-1"});
  EXPECT_EQ(supervisor_->next_deadline(), now_ + seconds(10));
  // Nothing of the user's runs at a task that never came, so nobody waits for its end.
  EXPECT_EQ(time_passes(seconds(59)),
            (Texts{"say after 60 s only 2 of 3 have arrived; missing: worker-1; stopping the rest", "stop server-0",
                   "stop worker-0", "kill worker-1"}));
  exits(kServer0, 0);
  exits(kWorker0, 0);
  ASSERT_TRUE(supervisor_->outcome());
  EXPECT_EQ(supervisor_->outcome()->kind, JobOutcome::Kind::kMissing);
  EXPECT_EQ(state(kWorker1), TaskState::kLost);
}

TEST_F(SupervisorTest, ManyThatAreMissingAreCounted) {
  begin(0, 100);
  EXPECT_TRUE(supervisor_->waiting_for().ends_with("worker-15 and 84 more")) << supervisor_->waiting_for();
}

TEST_F(SupervisorTest, ArrivalsAreToldAboutOnceASecondAtMost) {
  begin(0, 4);
  time_passes(seconds(1));
  arrive(kWorker0);
  arrive(kWorker1);
  EXPECT_EQ(supervisor_->next_deadline(), now_ + seconds(1));
  EXPECT_EQ(time_passes(seconds(1)), Texts{"say 2 of 4 have arrived; missing: worker-2, worker-3"});
  EXPECT_EQ(supervisor_->next_deadline(), now_ + seconds(10));
}

TEST_F(SupervisorTest, WithAMinimumTheRestMayComeLater) {
  begin(1, 3);
  plan_.workers_min = 1;
  arrive(kWorker0);
  EXPECT_EQ(arrive(kServer0), Texts{"release 2"});
  EXPECT_EQ(arrive(kWorker1), Texts{"release 3"});
  exits(kWorker0, 0);
  // The third never came: it is not waited for.
  EXPECT_EQ(exits(kWorker1, 0), (Texts{"stop server-0", "kill worker-2"}));
  exits(kServer0, 0);
  EXPECT_EQ(supervisor_->outcome()->kind, JobOutcome::Kind::kDone);
  EXPECT_EQ(state({TaskRole::kWorker, 2}), TaskState::kStopped);
}

TEST_F(SupervisorTest, AWorkerMayFailIfThatWasSaidUnlessNoneIsLeft) {
  begin(1, 2);
  plan_.worker_may_fail = true;
  all_run();
  EXPECT_EQ(exits(kWorker0, 3), Texts{"say worker-0 on h failed: exit code 3; the other workers go on"});
  EXPECT_EQ(exits(kWorker1, 4), (Texts{"say worker-0 on h failed: exit code 3; stopping the rest", "stop server-0"}));
  exits(kServer0, 0);
  EXPECT_EQ(supervisor_->outcome()->root_cause, kWorker0) << "the first by time";
}

TEST_F(SupervisorTest, AJobWhoseWorkersAreDoneSaveOneIsDone) {
  begin(1, 2);
  plan_.worker_may_fail = true;
  all_run();
  exits(kWorker0, 3);
  EXPECT_EQ(exits(kWorker1, 0), Texts{"stop server-0"});
  exits(kServer0, 0);
  EXPECT_EQ(supervisor_->outcome()->kind, JobOutcome::Kind::kDone);
}

TEST_F(SupervisorTest, AMachineThatIsLostIsAFailureWithItsReason) {
  begin(0, 2);
  all_run();
  event({.kind = TaskEvent::Kind::kLost, .task = kWorker0, .text = "no word for 30 s"});
  exits(kWorker1, 0, SIGTERM);
  EXPECT_EQ(supervisor_->outcome()->kind, JobOutcome::Kind::kFailed);
  EXPECT_EQ(supervisor_->outcome()->message, "worker-0 on h failed: no word for 30 s");
}

TEST_F(SupervisorTest, AMachineThatWasNeverThereIsMissing) {
  begin(0, 1);
  event({.kind = TaskEvent::Kind::kLost, .task = kWorker0, .text = "no such image"});
  EXPECT_EQ(supervisor_->outcome()->kind, JobOutcome::Kind::kMissing);
}

TEST_F(SupervisorTest, AnInterruptStopsAndASecondKills) {
  begin(1, 1);
  all_run();
  EXPECT_EQ(texts(supervisor_->on_interrupt(now_)),
            (Texts{"say interrupted; stopping the rest", "stop server-0", "stop worker-0"}));
  exits(kWorker0, 0, SIGTERM);
  EXPECT_EQ(texts(supervisor_->on_interrupt(now_)), Texts{"kill server-0"});
  EXPECT_EQ(texts(supervisor_->on_interrupt(now_)), Texts{}) << "it was told already";
  exits(kServer0, 0, SIGKILL);
  EXPECT_EQ(supervisor_->outcome()->kind, JobOutcome::Kind::kInterrupted);
}

TEST_F(SupervisorTest, AJobThatIsDoneStaysDoneThoughItsEndIsInterrupted) {
  begin(1, 1);
  all_run();
  exits(kWorker0, 0);
  EXPECT_EQ(texts(supervisor_->on_interrupt(now_)), Texts{"say the job is being stopped; once more ends it at once"});
  EXPECT_EQ(texts(supervisor_->on_interrupt(now_)), Texts{"kill server-0"});
  exits(kServer0, 0, SIGKILL);
  EXPECT_EQ(supervisor_->outcome()->kind, JobOutcome::Kind::kDone);
}

TEST_F(SupervisorTest, WhoDoesNotEndIsKilledAndThenLost) {
  begin(1, 1);
  all_run();
  exits(kWorker0, 0);
  EXPECT_EQ(supervisor_->next_deadline(), now_ + milliseconds(plan_.stop_grace_ms) + Supervisor::kStopSlack);
  now_ = supervisor_->next_deadline();
  EXPECT_EQ(texts(supervisor_->on_time(now_)), Texts{"kill server-0"});
  EXPECT_EQ(supervisor_->next_deadline(), now_ + Supervisor::kKillWait);
  now_ = supervisor_->next_deadline();
  EXPECT_EQ(texts(supervisor_->on_time(now_)), Texts{"say server-0 on h does not end though it was killed"});
  EXPECT_EQ(supervisor_->outcome()->kind, JobOutcome::Kind::kDone);
  EXPECT_EQ(state(kServer0), TaskState::kLost);
}

TEST_F(SupervisorTest, ARunThatTakesTooLongFailsAndSaysSo) {
  begin(0, 1);
  plan_.run_timeout_ms = 2500;
  all_run();
  EXPECT_EQ(supervisor_->next_deadline(), now_ + milliseconds(2500));
  EXPECT_EQ(time_passes(milliseconds(2500)),
            (Texts{"say the job has not ended within 2.5 s, as it should; stopping the rest", "stop worker-0"}));
  exits(kWorker0, 0, SIGTERM);
  EXPECT_EQ(supervisor_->outcome()->kind, JobOutcome::Kind::kFailed);
}

TEST_F(SupervisorTest, TasksThatRunUnaskedHaveArrived) {
  begin(1, 1);
  event({.kind = TaskEvent::Kind::kRunning, .task = kWorker0});
  // The server has not come yet, and need not any more.
  EXPECT_EQ(exits(kWorker0, 0), Texts{"kill server-0"});
  ASSERT_TRUE(supervisor_->outcome());
  EXPECT_EQ(supervisor_->outcome()->kind, JobOutcome::Kind::kDone);
  EXPECT_EQ(state(kServer0), TaskState::kStopped);
}

TEST_F(SupervisorTest, AWorkerWhoseMachineGoesIsDrainedAndBeginsElsewhere) {
  begin_elastic(2);
  EXPECT_EQ(notice(kWorker1),
            (Texts{"say worker-1 on h: its machine is taken away in 118 s; it is drained, and another machine is "
                   "looked for",
                   "stop worker-1", "find worker-1"}));
  EXPECT_EQ(notice(kWorker1), Texts{}) << "once is enough";
  EXPECT_EQ(exits(kWorker1, 130), Texts{"say worker-1 on h is drained"});
  EXPECT_EQ(state(kWorker1), TaskState::kDrained);
  EXPECT_EQ(machine(kWorker1, "h3"), (Texts{"say worker-1 begins once more, on h3", "restart worker-1 h3"}));
  EXPECT_EQ(arrive(kWorker1), Texts{"release 3"});
  EXPECT_EQ(supervisor_->tasks()[2].attempt, 1);
  EXPECT_EQ(exits(kWorker0, 0), Texts{}) << "the new one is waited for";
  EXPECT_EQ(exits(kWorker1, 0), Texts{"stop server-0"});
  exits(kServer0, 0);
  EXPECT_EQ(supervisor_->outcome()->kind, JobOutcome::Kind::kDone);
}

TEST_F(SupervisorTest, AMachineThatComesFirstWaitsForTheEndOfTheWorker) {
  begin_elastic(1);
  notice(kWorker0);
  EXPECT_EQ(machine(kWorker0, "h2"), Texts{});
  EXPECT_EQ(event({.kind = TaskEvent::Kind::kLost, .task = kWorker0, .text = "h is lost"}),
            (Texts{"say worker-0 on h is drained", "say worker-0 begins once more, on h2", "restart worker-0 h2"}));
  EXPECT_EQ(supervisor_->next_deadline(), now_ + seconds(60));
  EXPECT_EQ(time_passes(seconds(60)),
            (Texts{"say worker-0 on h2 failed: it has not come within 60 s; stopping the rest", "stop server-0"}));
}

TEST_F(SupervisorTest, AMachineThatGoesBeforeTheJobBeginsIsDrainedWhenItHas) {
  begin(1, 2);
  plan_.worker_may_fail = plan_.late_workers = true;
  arrive(kWorker0);
  arrive(kWorker1);
  EXPECT_EQ(notice(kWorker0).size(), 1u) << "it is told";
  EXPECT_EQ(arrive(kServer0), (Texts{"release 3", "stop worker-0", "find worker-0"}));
}

TEST_F(SupervisorTest, WithoutAMachineTheOthersGoOnAndTheLastIsTheEnd) {
  begin_elastic(2);
  notice(kWorker0);
  exits(kWorker0, 130);
  EXPECT_EQ(machine(kWorker0, "", "none to give"),
            Texts{"say there is no machine for worker-0: none to give; the other workers go on"});
  notice(kWorker1);
  EXPECT_EQ(exits(kWorker1, 130), Texts{"say worker-1 on h is drained"}) << "a machine may yet come";
  EXPECT_FALSE(supervisor_->outcome());
  EXPECT_EQ(machine(kWorker1, "", "none to give"),
            (Texts{"say there is no machine for worker-1: none to give; the other workers go on",
                   "say the machines of all workers were taken away; stopping the rest", "stop server-0"}));
  exits(kServer0, 0);
  EXPECT_EQ(supervisor_->outcome()->kind, JobOutcome::Kind::kFailed);
}

TEST_F(SupervisorTest, AWorkerThatIsDoneBeforeItsMachineGoesIsDone) {
  begin_elastic(1);
  notice(kWorker0);
  EXPECT_EQ(exits(kWorker0, 0), Texts{"stop server-0"});
  EXPECT_EQ(machine(kWorker0, "h2"), Texts{});
  exits(kServer0, 0);
  EXPECT_EQ(supervisor_->outcome()->kind, JobOutcome::Kind::kDone);
}

TEST_F(SupervisorTest, WhoIsDrainedAndDoesNotEndIsKilledAndNoFailure) {
  begin_elastic(2);
  notice(kWorker0);
  now_ = supervisor_->next_deadline();
  EXPECT_EQ(texts(supervisor_->on_time(now_)), Texts{"kill worker-0"});
  EXPECT_EQ(exits(kWorker0, 0, SIGKILL), Texts{"say worker-0 on h is drained"});
  EXPECT_EQ(state(kWorker0), TaskState::kDrained);
  EXPECT_FALSE(supervisor_->decided());
}

TEST_F(SupervisorTest, AJobThatCannotDoWithoutAWorkerIsOnlyTold) {
  begin(1, 1);
  all_run();
  EXPECT_EQ(notice(kWorker0),
            Texts{"say worker-0 on h: its machine is taken away in 118 s, and the job cannot do without it"});
  EXPECT_EQ(exits(kWorker0, 0), Texts{"stop server-0"}) << "it was fast enough";
}

TEST_F(SupervisorTest, AWorkerOfAJobThatNobodyCanJoinIsDrainedAndNotReplaced) {
  begin(1, 2);
  plan_.worker_may_fail = true;
  all_run();
  EXPECT_EQ(notice(kWorker0),
            (Texts{"say worker-0 on h: its machine is taken away in 118 s; it is drained, and no other can join this "
                   "job while it runs",
                   "stop worker-0"}));
  exits(kWorker0, 0, SIGTERM);
  EXPECT_EQ(exits(kWorker1, 0), Texts{"stop server-0"});
}

TEST_F(SupervisorTest, NothingFollowsTheOutcome) {
  begin(0, 1);
  all_run();
  exits(kWorker0, 0);
  ASSERT_TRUE(supervisor_->outcome());
  EXPECT_EQ(exits(kWorker0, 1), Texts{});
  EXPECT_EQ(arrive(kWorker0), Texts{});
  EXPECT_EQ(time_passes(std::chrono::hours(5)), Texts{});
  EXPECT_EQ(texts(supervisor_->on_interrupt(now_)), Texts{});
  EXPECT_EQ(supervisor_->next_deadline(), Supervisor::Now::max());
}

}  // namespace
}  // namespace pscloud

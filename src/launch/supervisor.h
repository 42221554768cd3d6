#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "launch/backend.h"
#include "launch/plan.h"

namespace pscloud {

// kDrained: its machine is taken away, and it was ended in good order before that.
enum class TaskState : uint8_t { kPlanned, kPlaced, kArrived, kRunning, kDone, kStopped, kFailed, kLost, kDrained };
const char* task_state_name(TaskState state);
Result<TaskState> parse_task_state(std::string_view name);

struct TaskStatus {
  TaskId id;
  TaskState state = TaskState::kPlanned;
  std::string host;
  Address address;
  std::optional<int> code;  // of its exit; 128 + signal
  int attempt = 0;          // how often it was begun anew

  bool ended() const { return state >= TaskState::kDone; }
};

enum class JobPhase : uint8_t { kWaiting, kRunning, kStopping, kEnded };

struct JobOutcome {
  enum class Kind : uint8_t { kDone, kFailed, kMissing, kInterrupted } kind = Kind::kDone;
  std::optional<TaskId> root_cause;  // the first that failed, by time
  std::string message;               // one line for people
};

// What a job does next: a plain state machine, fed with what happened and when; the same for every back end, and tried
// under many seeds by a back end that is made up (backend_fake). Rules:
// - all tasks (or workers_min workers and all others) must arrive within arrive_timeout_ms; then they are released
//   together; who comes later is released then. Missing ones are named.
// - when the tasks that end the job are done, the others are stopped at once and count as stopped, never as failed.
// - a task that ends with another code than 0, by a signal or with its machine is a failure; the first by time is the
//   root cause, though it may be heard of after one that it caused, and the rest are stopped. Which was first does not
//   depend on clocks of different machines that agree. With worker_may_fail a worker's failure is only named, unless
//   none is left. Code 0 is done for any task: our own servers end by themselves.
// - a worker whose machine is taken away is drained, if workers may fail: it is told to end in good order, which is no
//   failure. If workers may join late a machine is looked for meanwhile; when there is one, and the worker has ended,
//   it begins there once more. If there is none the others go on. A job whose workers may not fail is only told.
// - an interruption stops all; a second one at once. run_timeout_ms, from the release, is a failure that says so.
// - a task that has not arrived when all are stopped has ended with that: nothing of the user's runs there, and
//   Backend::clean removes the rest. One that does not end though it was killed is lost after kKillWait.
class Supervisor {
 public:
  using Now = std::chrono::steady_clock::time_point;
  static constexpr std::chrono::seconds kStopSlack{5};  // beyond the grace, before it is killed from here
  static constexpr std::chrono::seconds kKillWait{10};  // from there until it counts as lost

  struct Action {
    enum class Kind : uint8_t { kRelease, kStop, kKill, kSay, kFindMachine, kRestart } kind;
    TaskId task = {};       // of kStop, kKill, kFindMachine, kRestart
    ClusterView view = {};  // of kRelease
    std::string text = {};  // of kSay: progress, for the terminal and the launcher's log
    std::string host = {};  // of kFindMachine: that goes away; of kRestart: to begin on
  };

  Supervisor(const Plan& plan, Now start);

  std::vector<Action> on_event(const TaskEvent& event, Now now);
  std::vector<Action> on_interrupt(Now now);
  // What has come of kFindMachine: the name of a machine, or nothing, and then `why`.
  std::vector<Action> on_machine(TaskId task, const std::string& host, const std::string& why, Now now);
  // Call at next_deadline() at the latest.
  std::vector<Action> on_time(Now now);
  Now next_deadline() const;

  // Set once every task has ended.
  const std::optional<JobOutcome>& outcome() const { return outcome_; }
  // Set as soon as it is clear how that will be.
  const std::optional<JobOutcome>& decided() const { return decided_; }
  const std::vector<TaskStatus>& tasks() const { return tasks_; }
  JobPhase phase() const { return phase_; }
  // Whom it waits for, in words: "3 of 8 have arrived; missing: worker-4, worker-7". Empty while it runs.
  std::string waiting_for() const;

 private:
  // What is known of a task beside its status, in the order of tasks_.
  struct Watch {
    bool released = false;
    bool stopping = false;  // it was told to end: whatever comes then is no failure
    bool noticed = false;   // its machine is taken away;
    bool draining = false;  // so it was told to end;
    bool moving = false;    // and begins elsewhere, if there is a machine:
    std::string next_host = {};
    bool killed = false;
    Now kill_at = Now::max();
    Now give_up_at = Now::max();
    Now arrive_by = Now::max();  // once it was begun anew
  };
  using Actions = std::vector<Action>;

  // When a task ended by itself, as far as that is known.
  struct End {
    std::string host = {};
    int64_t unix_us = 0;  // by the host's clock; 0: not known
    Now latest = {};      // by ours: then, or by `late` sooner
    std::chrono::microseconds late{0};

    bool is_before(const End& other) const;
  };

  size_t index_of(TaskId id) const;
  bool has_arrived(size_t i) const;
  bool enough_arrived() const;
  void take_arrival(size_t i, const TaskEvent& event);
  void take_end(size_t i, const TaskEvent& event, Now now, Actions& actions);
  void take_loss(size_t i, const std::string& why, Now now, Actions& actions);
  void take_notice(size_t i, const TaskEvent& event, Now now, Actions& actions);
  void drain_noticed(Now now, Actions& actions);
  void drain(size_t i, Now now, Actions& actions);
  void take_drained(size_t i, Now now, Actions& actions);
  void restart(size_t i, Now now, Actions& actions);
  bool has_workers_left() const;
  void fail_without_workers(Now now, Actions& actions);
  bool was_the_cause(size_t i, int code, const End& end) const;
  void fail(size_t i, const std::string& how, JobOutcome::Kind kind, const End& end, Now now, Actions& actions);
  void go_on(Now now, Actions& actions);
  void release(Actions& actions);
  void stop_all(JobOutcome outcome, Now now, Actions& actions);
  void kill(size_t i, Now now, Actions& actions);
  void end_if_all_ended();
  std::string where(size_t i) const;

  const Plan& plan_;
  const Now arrive_by_;
  std::vector<TaskStatus> tasks_;
  std::vector<Watch> watches_;
  JobPhase phase_ = JobPhase::kWaiting;
  int interrupts_ = 0;
  Now run_until_ = Now::max();
  bool said_missing_ = false;
  Now said_at_;
  Now say_at_;
  std::optional<JobOutcome> decided_;      // while it stops
  std::optional<JobOutcome> first_fault_;  // of workers that may fail
  End cause_end_;                          // of the root cause of decided_ or first_fault_
  std::optional<JobOutcome> outcome_;
};

}  // namespace pscloud

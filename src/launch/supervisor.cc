#include "launch/supervisor.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>

#include "base/check.h"

namespace pscloud {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::array kTaskStateNames = {"planned", "placed", "arrived", "running", "done",
                                        "stopped", "failed", "lost",    "drained"};
constexpr size_t kMissingNamed = 16;
constexpr seconds kFirstWord{1};  // who is missing is said after this,
constexpr seconds kSayEvery{10};  // then so often,
constexpr seconds kSayGap{1};     // or, if somebody has come, no sooner than this after the last time

std::string exit_text(int code) {
  if (code <= 128 || code > 128 + SIGRTMAX) return fmt::format("exit code {}", code);
  const char* name = ::sigabbrev_np(code - 128);
  return name == nullptr ? fmt::format("signal {}", code - 128) : fmt::format("signal {} (SIG{})", code - 128, name);
}

}  // namespace

const char* task_state_name(TaskState state) { return kTaskStateNames.at(static_cast<size_t>(state)); }

Result<TaskState> parse_task_state(std::string_view name) {
  const auto found = std::ranges::find(kTaskStateNames, name);
  if (found == kTaskStateNames.end()) return invalid("'{}' is no state of a task", name);
  return static_cast<TaskState>(found - kTaskStateNames.begin());
}

Supervisor::Supervisor(const Plan& plan, Now start)
    : plan_(plan),
      arrive_by_(start + milliseconds(plan.arrive_timeout_ms)),
      watches_(plan.tasks.size()),
      said_at_(start),
      say_at_(start + kFirstWord) {
  for (const PlannedTask& task : plan.tasks) {
    tasks_.push_back({.id = task.spec.id, .state = TaskState::kPlanned, .host = task.host, .address = {}, .code = {}});
  }
}

size_t Supervisor::index_of(TaskId id) const {
  return static_cast<size_t>(std::ranges::find(tasks_, id, &TaskStatus::id) - tasks_.begin());
}

bool Supervisor::has_arrived(size_t i) const { return tasks_[i].state >= TaskState::kArrived; }

bool Supervisor::enough_arrived() const {
  int workers = 0;
  int workers_here = 0;
  for (size_t i = 0; i < tasks_.size(); ++i) {
    const bool here = has_arrived(i);
    if (tasks_[i].id.role == TaskRole::kWorker) {
      ++workers;
      workers_here += here ? 1 : 0;
    } else if (!here) {
      return false;
    }
  }
  return workers_here >= (plan_.workers_min > 0 ? plan_.workers_min : workers);
}

std::vector<Supervisor::Action> Supervisor::on_event(const TaskEvent& event, Now now) {
  Actions actions;
  const size_t i = index_of(event.task);
  if (outcome_ || i == tasks_.size() || tasks_[i].ended()) return actions;
  TaskStatus& task = tasks_[i];
  if (event.kind == TaskEvent::Kind::kLine || event.kind == TaskEvent::Kind::kSample) return actions;
  if (!event.host.empty()) task.host = event.host;
  switch (event.kind) {
    case TaskEvent::Kind::kPlaced: task.state = std::max(task.state, TaskState::kPlaced); break;
    case TaskEvent::Kind::kArrived: take_arrival(i, event); break;
    case TaskEvent::Kind::kRunning:
      task.state = std::max(task.state, TaskState::kRunning);
      if (!event.address.host.empty()) task.address = event.address;
      break;
    case TaskEvent::Kind::kLine:
    case TaskEvent::Kind::kSample: break;
    case TaskEvent::Kind::kExited: take_end(i, event, now, actions); break;
    case TaskEvent::Kind::kLost: take_loss(i, event.text, now, actions); break;
    case TaskEvent::Kind::kNotice: take_notice(i, event, now, actions); break;
  }
  go_on(now, actions);
  return actions;
}

void Supervisor::take_arrival(size_t i, const TaskEvent& event) {
  TaskStatus& task = tasks_[i];
  if (has_arrived(i)) return;
  task.state = TaskState::kArrived;
  task.address = event.address;
  say_at_ = std::min(say_at_, said_at_ + kSayGap);
}

// A machine knows the order of its own. Of two machines it is the order in which we heard of them, except that they
// were not looked at all the time: clocks may tell more, if what they say can be.
bool Supervisor::End::is_before(const End& other) const {
  if (unix_us == 0 || other.unix_us == 0) return false;
  const std::chrono::microseconds by_clocks(unix_us - other.unix_us);
  if (host == other.host) return by_clocks.count() < 0;
  const auto by_us = latest - other.latest;
  const bool can_be = by_clocks >= by_us - late && by_clocks <= by_us + other.late;
  return can_be ? by_clocks.count() < 0 : by_us.count() < 0;
}

// It failed before the one that was heard of first, and so before it could have been told to end.
bool Supervisor::was_the_cause(size_t i, int code, const End& end) const {
  const bool may_fail = plan_.worker_may_fail && tasks_[i].id.role == TaskRole::kWorker;
  return decided_ && decided_->kind == JobOutcome::Kind::kFailed && decided_->root_cause && !may_fail && code != 0 &&
         end.is_before(cause_end_);
}

void Supervisor::take_end(size_t i, const TaskEvent& event, Now now, Actions& actions) {
  TaskStatus& task = tasks_[i];
  const int code = event.signal != 0 ? 128 + event.signal : event.code;
  task.code = code;
  const End end{task.host, event.ended_unix_us, now - event.ended_ago, event.heard_late};
  if (was_the_cause(i, code, end)) {
    task.state = TaskState::kFailed;
    cause_end_ = end;
    const std::string before = decided_->root_cause->text();
    decided_->root_cause = task.id;
    decided_->message = fmt::format("{} failed: {}", where(i), exit_text(code));
    actions.push_back(
        {.kind = Action::Kind::kSay, .text = fmt::format("{}, before {} did", decided_->message, before)});
  } else if (watches_[i].stopping) {
    task.state = TaskState::kStopped;
  } else if (code == 0) {
    task.state = TaskState::kDone;
    watches_[i].moving = false;
  } else if (watches_[i].draining) {
    take_drained(i, now, actions);
  } else {
    task.state = TaskState::kFailed;
    fail(i, exit_text(code), JobOutcome::Kind::kFailed, end, now, actions);
  }
}

void Supervisor::take_loss(size_t i, const std::string& why, Now now, Actions& actions) {
  const bool had_arrived = has_arrived(i);
  tasks_[i].state = TaskState::kLost;
  if (watches_[i].stopping) return;
  if (watches_[i].draining) return take_drained(i, now, actions);
  fail(i, why, had_arrived ? JobOutcome::Kind::kFailed : JobOutcome::Kind::kMissing, {}, now, actions);
}

void Supervisor::take_notice(size_t i, const TaskEvent& event, Now now, Actions& actions) {
  Watch& watch = watches_[i];
  if (decided_ || watch.noticed) return;
  watch.noticed = true;
  std::string text = fmt::format("{}: its machine is taken away in {} s", where(i), event.seconds);
  if (tasks_[i].id.role != TaskRole::kWorker || !plan_.worker_may_fail) {
    // To end it now would end the job, which may yet be faster.
    text += ", and the job cannot do without it";
  } else {
    text += plan_.late_workers ? "; it is drained, and another machine is looked for"
                               : "; it is drained, and no other can join this job while it runs";
  }
  actions.push_back({.kind = Action::Kind::kSay, .text = std::move(text)});
  if (phase_ == JobPhase::kRunning) drain_noticed(now, actions);
}

// A job that has not begun yet waits for all: they are drained when it has.
void Supervisor::drain_noticed(Now now, Actions& actions) {
  if (!plan_.worker_may_fail) return;
  for (size_t i = 0; i < tasks_.size(); ++i) {
    const bool worker = tasks_[i].id.role == TaskRole::kWorker;
    if (worker && watches_[i].noticed && !watches_[i].draining && !tasks_[i].ended()) drain(i, now, actions);
  }
}

void Supervisor::drain(size_t i, Now now, Actions& actions) {
  Watch& watch = watches_[i];
  watch.draining = true;
  watch.kill_at = now + milliseconds(plan_.stop_grace_ms) + kStopSlack;
  watch.moving = plan_.late_workers;
  actions.push_back({.kind = Action::Kind::kStop, .task = tasks_[i].id});
  if (watch.moving) {
    actions.push_back({.kind = Action::Kind::kFindMachine, .task = tasks_[i].id, .host = tasks_[i].host});
  }
}

void Supervisor::take_drained(size_t i, Now now, Actions& actions) {
  tasks_[i].state = TaskState::kDrained;
  actions.push_back({.kind = Action::Kind::kSay, .text = where(i) + " is drained"});
  if (!watches_[i].next_host.empty()) return restart(i, now, actions);
  if (!has_workers_left()) fail_without_workers(now, actions);
}

std::vector<Supervisor::Action> Supervisor::on_machine(TaskId id, const std::string& host, const std::string& why,
                                                       Now now) {
  Actions actions;
  const size_t i = index_of(id);
  if (decided_ || i == tasks_.size() || !watches_[i].moving) return actions;
  if (host.empty()) {
    watches_[i].moving = false;
    actions.push_back({.kind = Action::Kind::kSay,
                       .text = fmt::format("there is no machine for {}: {}; the other workers go on", id.text(), why)});
    if (tasks_[i].ended() && !has_workers_left()) fail_without_workers(now, actions);
  } else {
    watches_[i].next_host = host;
    if (tasks_[i].ended()) restart(i, now, actions);
  }
  go_on(now, actions);
  return actions;
}

void Supervisor::restart(size_t i, Now now, Actions& actions) {
  TaskStatus& task = tasks_[i];
  const std::string host = watches_[i].next_host;
  actions.push_back(
      {.kind = Action::Kind::kSay, .text = fmt::format("{} begins once more, on {}", task.id.text(), host)});
  task = {.id = task.id,
          .state = TaskState::kPlanned,
          .host = host,
          .address = {},
          .code = {},
          .attempt = task.attempt + 1};
  watches_[i] = {};
  watches_[i].arrive_by = now + milliseconds(plan_.arrive_timeout_ms);
  actions.push_back({.kind = Action::Kind::kRestart, .task = task.id, .host = host});
}

// One that works, has done its work, or will be there again.
bool Supervisor::has_workers_left() const {
  for (size_t i = 0; i < tasks_.size(); ++i) {
    const TaskState state = tasks_[i].state;
    const bool gone = state == TaskState::kFailed || state == TaskState::kLost || state == TaskState::kDrained;
    if (tasks_[i].id.role == TaskRole::kWorker && (!gone || watches_[i].moving)) return true;
  }
  return false;
}

void Supervisor::fail_without_workers(Now now, Actions& actions) {
  if (decided_) return;
  stop_all(first_fault_.value_or(JobOutcome{.kind = JobOutcome::Kind::kFailed,
                                            .root_cause = {},
                                            .message = "the machines of all workers were taken away"}),
           now, actions);
}

std::string Supervisor::where(size_t i) const {
  return tasks_[i].host.empty() ? tasks_[i].id.text() : fmt::format("{} on {}", tasks_[i].id.text(), tasks_[i].host);
}

void Supervisor::fail(size_t i, const std::string& how, JobOutcome::Kind kind, const End& end, Now now,
                      Actions& actions) {
  if (decided_) return;
  JobOutcome outcome{.kind = kind, .root_cause = tasks_[i].id, .message = fmt::format("{} failed: {}", where(i), how)};
  if (plan_.worker_may_fail && tasks_[i].id.role == TaskRole::kWorker) {
    if (!first_fault_ || end.is_before(cause_end_)) {
      first_fault_ = outcome;
      cause_end_ = end;
    }
    if (has_workers_left()) {
      actions.push_back({.kind = Action::Kind::kSay, .text = outcome.message + "; the other workers go on"});
      return;
    }
    outcome = *first_fault_;
  } else {
    cause_end_ = end;
  }
  stop_all(std::move(outcome), now, actions);
}

// What follows from the states of all tasks.
void Supervisor::go_on(Now now, Actions& actions) {
  if (!decided_) {
    const bool was_waiting = phase_ == JobPhase::kWaiting;
    if (was_waiting && enough_arrived()) {
      phase_ = JobPhase::kRunning;
      if (plan_.run_timeout_ms > 0) run_until_ = now + milliseconds(plan_.run_timeout_ms);
      if (said_missing_) actions.push_back({.kind = Action::Kind::kSay, .text = "all are there"});
    }
    if (phase_ == JobPhase::kRunning) release(actions);
    if (was_waiting && phase_ == JobPhase::kRunning) drain_noticed(now, actions);
    // Who has not come though the rest began is not waited for.
    bool pending = false;
    bool done = false;
    for (size_t i = 0; i < tasks_.size(); ++i) {
      if (!plan_.tasks[i].ends_job) continue;
      pending = pending || (!tasks_[i].ended() && (has_arrived(i) || phase_ == JobPhase::kWaiting));
      done = done || tasks_[i].state == TaskState::kDone;
    }
    if (!pending && done) stop_all({.kind = JobOutcome::Kind::kDone, .root_cause = {}, .message = ""}, now, actions);
  }
  end_if_all_ended();
}

void Supervisor::release(Actions& actions) {
  ClusterView view;
  view.job = plan_.job;
  bool any = false;
  for (size_t i = 0; i < tasks_.size(); ++i) {
    if (tasks_[i].address.host.empty()) continue;
    view.tasks.push_back({tasks_[i].id, tasks_[i].address});
    any = any || (!watches_[i].released && tasks_[i].state == TaskState::kArrived);
    watches_[i].released = true;
  }
  if (!any) return;
  std::ranges::sort(view.tasks, {}, &TaskAddress::id);
  actions.push_back({.kind = Action::Kind::kRelease, .view = std::move(view)});
}

void Supervisor::stop_all(JobOutcome outcome, Now now, Actions& actions) {
  CHECK(!decided_);
  if (!outcome.message.empty()) {
    const bool any = std::ranges::any_of(tasks_, [](const TaskStatus& task) { return !task.ended(); });
    actions.push_back(
        {.kind = Action::Kind::kSay, .text = any ? outcome.message + "; stopping the rest" : outcome.message});
  }
  const TaskState of_missing = outcome.kind == JobOutcome::Kind::kMissing ? TaskState::kLost : TaskState::kStopped;
  decided_ = std::move(outcome);
  phase_ = JobPhase::kStopping;
  for (size_t i = 0; i < tasks_.size(); ++i) {
    watches_[i].moving = false;
    if (tasks_[i].ended()) continue;
    if (!has_arrived(i)) {
      actions.push_back({.kind = Action::Kind::kKill, .task = tasks_[i].id});
      tasks_[i].state = of_missing;
      continue;
    }
    watches_[i].stopping = true;
    watches_[i].kill_at = now + milliseconds(plan_.stop_grace_ms) + kStopSlack;
    actions.push_back({.kind = Action::Kind::kStop, .task = tasks_[i].id});
  }
  end_if_all_ended();
}

void Supervisor::kill(size_t i, Now now, Actions& actions) {
  if (watches_[i].killed || tasks_[i].ended()) return;
  watches_[i].killed = true;
  watches_[i].stopping = watches_[i].stopping || !watches_[i].draining;
  watches_[i].kill_at = Now::max();
  watches_[i].give_up_at = now + kKillWait;
  actions.push_back({.kind = Action::Kind::kKill, .task = tasks_[i].id});
}

void Supervisor::end_if_all_ended() {
  if (outcome_ || !std::ranges::all_of(tasks_, &TaskStatus::ended)) return;
  if (std::ranges::any_of(watches_, &Watch::moving)) return;
  if (!decided_) {
    // Nobody who ends the job was done, and each failure was one that may be.
    decided_ = first_fault_ ? *first_fault_
                            : JobOutcome{.kind = JobOutcome::Kind::kFailed,
                                         .root_cause = {},
                                         .message = "no worker has come to its end"};
  }
  outcome_ = decided_;
  phase_ = JobPhase::kEnded;
}

std::vector<Supervisor::Action> Supervisor::on_interrupt(Now now) {
  Actions actions;
  if (outcome_) return actions;
  ++interrupts_;
  if (!decided_) {
    stop_all({.kind = JobOutcome::Kind::kInterrupted, .root_cause = {}, .message = "interrupted"}, now, actions);
  } else if (interrupts_ == 1) {
    actions.push_back({.kind = Action::Kind::kSay, .text = "the job is being stopped; once more ends it at once"});
  } else {
    for (size_t i = 0; i < tasks_.size(); ++i) kill(i, now, actions);
  }
  return actions;
}

std::vector<Supervisor::Action> Supervisor::on_time(Now now) {
  Actions actions;
  if (outcome_) return actions;
  if (phase_ == JobPhase::kWaiting && now >= arrive_by_) {
    JobOutcome outcome{.kind = JobOutcome::Kind::kMissing, .root_cause = {}, .message = ""};
    outcome.message = fmt::format("after {:g} s only {}", plan_.arrive_timeout_ms / 1000.0, waiting_for());
    stop_all(std::move(outcome), now, actions);
  } else if (phase_ == JobPhase::kWaiting && now >= say_at_) {
    said_missing_ = true;
    said_at_ = now;
    say_at_ = now + kSayEvery;
    actions.push_back({.kind = Action::Kind::kSay, .text = waiting_for()});
  }
  if (phase_ == JobPhase::kRunning && now >= run_until_) {
    const std::string message = fmt::format("the job has not ended within {:g} s, as it should",
                                            static_cast<double>(plan_.run_timeout_ms) / 1000);
    stop_all({.kind = JobOutcome::Kind::kFailed, .root_cause = {}, .message = message}, now, actions);
  }
  for (size_t i = 0; i < tasks_.size(); ++i) {
    if (now >= watches_[i].kill_at) kill(i, now, actions);
    if (now >= watches_[i].give_up_at && !tasks_[i].ended()) {
      tasks_[i].state = TaskState::kLost;
      actions.push_back(
          {.kind = Action::Kind::kSay, .text = fmt::format("{} does not end though it was killed", where(i))});
      if (!watches_[i].stopping) take_drained(i, now, actions);
    }
    if (now >= watches_[i].arrive_by && !has_arrived(i)) {
      take_loss(i, fmt::format("it has not come within {} s", plan_.arrive_timeout_ms / 1000), now, actions);
    }
  }
  end_if_all_ended();
  return actions;
}

Supervisor::Now Supervisor::next_deadline() const {
  if (outcome_) return Now::max();
  Now next = phase_ == JobPhase::kWaiting ? std::min(arrive_by_, say_at_) : Now::max();
  if (phase_ == JobPhase::kRunning) next = std::min(next, run_until_);
  for (size_t i = 0; i < tasks_.size(); ++i) {
    if (!tasks_[i].ended()) next = std::min({next, watches_[i].kill_at, watches_[i].give_up_at});
    if (!has_arrived(i)) next = std::min(next, watches_[i].arrive_by);
  }
  return next;
}

std::string Supervisor::waiting_for() const {
  if (phase_ != JobPhase::kWaiting) return "";
  std::vector<std::string> missing;
  for (size_t i = 0; i < tasks_.size(); ++i) {
    if (!has_arrived(i)) missing.push_back(where(i));
  }
  const size_t more = missing.size() > kMissingNamed ? missing.size() - kMissingNamed : 0;
  missing.resize(missing.size() - more);
  return fmt::format("{} of {} have arrived; missing: {}{}", tasks_.size() - missing.size() - more, tasks_.size(),
                     fmt::join(missing, ", "), more > 0 ? fmt::format(" and {} more", more) : "");
}

}  // namespace pscloud

#include "launch/rendezvous/rendezvous.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>  // NOLINT: <csignal> does not promise kill
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <optional>

#include "launch/agent/agent.h"
#include "launch/process/interrupts.h"
#include "launch/rendezvous/folder_watch.h"
#include "launch/rendezvous/rendezvous_file.h"
#include "launch/supervisor.h"
#include "net/sigpipe.h"

namespace pscloud {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr int kCodeFailed = 1;
constexpr int kCodeMissing = 3;
constexpr int kCodeInterrupted = 130;

// Whether or not somebody reads it: fmt::print would throw.
void tell(TaskId task, std::string_view text) {
  const SigpipeBlock quiet;
  std::fputs(fmt::format("pscloud: {}: {}\n", task.text(), text).c_str(), stderr);
}

int fail_rendezvous(TaskId task, const Error& error) {
  tell(task, error.message);
  return error.code == Code::kInvalid ? 2 : kCodeFailed;
}

// A task that was started again is another attempt: what the one before has written is not its own.
Result<int> next_attempt(const SharedFolder& folder, TaskId task) {
  int next = 0;
  for (const std::string& name : TRY(folder.names())) {
    if (name == folder_file::kDone || name == folder_file::kAbort) {
      return invalid("the job of {} has ended: every job needs an id of its own", folder.path());
    }
    const auto arrived = folder_file::of_arrival(name);
    if (arrived && arrived->task == task) next = std::max(next, arrived->attempt + 1);
  }
  return next;
}

// Nobody has led in time, so each that has come says by itself who is missing. Whoever comes now is too late: the
// first of us has the word.
int end_without_leader(const Plan& plan, const SharedFolder& folder, TaskId self) {
  const auto now = steady_clock::now();
  Plan whole = plan;
  whole.workers_min = 0;  // without a leader the least is not enough
  Supervisor supervisor(whole, now);
  if (const auto names = folder.names()) {
    for (const std::string& name : *names) {
      const auto arrived = folder_file::of_arrival(name);
      if (arrived) supervisor.on_event({.kind = TaskEvent::Kind::kArrived, .task = arrived->task}, now);
    }
  }
  const std::string message =
      fmt::format("after {:g} s only {}", plan.arrive_timeout_ms / 1000.0, supervisor.waiting_for());
  const auto told =
      folder.create(folder_file::kAbort, folder_order_json({.job = plan.job, .reason = message, .code = kCodeMissing}));
  if (!told && told.error().code != Code::kInvalid) tell(self, told.error().message);
  tell(self, message);
  return kCodeMissing;
}

int follow(const Plan& plan, const SharedFolder& folder, const TaskSpec& spec, FolderTimes times) {
  FolderLink link(folder, spec, times, FolderLink::Lines::kHere, steady_clock::now());
  const int code = run_agent(link, {spec});
  switch (link.ending()) {
    case FolderLink::Ending::kNone:
      if (!link.why().empty()) tell(spec.id, link.why());
      return code;
    case FolderLink::Ending::kDone: return 0;
    case FolderLink::Ending::kAbort: tell(spec.id, link.why()); return link.abort_code();
    case FolderLink::Ending::kLeaderLost: tell(spec.id, link.why()); return kCodeFailed;
    case FolderLink::Ending::kNoLeader: return end_without_leader(plan, folder, spec.id);
  }
  return code;
}

int code_of(int wait_status) {
  return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

int code_of(JobOutcome::Kind kind) {
  switch (kind) {
    case JobOutcome::Kind::kDone: return 0;
    case JobOutcome::Kind::kMissing: return kCodeMissing;
    case JobOutcome::Kind::kInterrupted: return kCodeInterrupted;
    case JobOutcome::Kind::kFailed: break;
  }
  return kCodeFailed;
}

// The leader's own process; its task runs in a child of it, because an agent is a process of its own.
class Leader {
 public:
  Leader(const Plan& plan, TaskId self, FolderWatch& watch, pid_t agent)
      : self_(self), watch_(watch), agent_(agent), supervisor_(plan, steady_clock::now()) {}

  int run(Interrupts& interrupts) {
    while (!supervisor_.outcome() || agent_ != 0) {
      const auto now = steady_clock::now();
      for (const TaskEvent& event : watch_.look(now)) act(supervisor_.on_event(event, now));
      if (interrupts.take() > 0) act(supervisor_.on_interrupt(now));
      if (now >= supervisor_.next_deadline()) act(supervisor_.on_time(now));
      reap(now);
      if (supervisor_.outcome() && agent_ == 0) break;
      pollfd polled{interrupts.fd(), POLLIN, 0};
      const auto until = std::min({supervisor_.next_deadline(), watch_.look_again(), now + milliseconds(500)});
      const auto left = std::chrono::ceil<milliseconds>(until - steady_clock::now()).count();
      ::poll(&polled, 1, static_cast<int>(std::max<int64_t>(left, 0)));
    }
    const JobOutcome& outcome = *supervisor_.outcome();
    if (!outcome.message.empty()) tell(self_, outcome.message);
    return code_ == 0 ? code_of(outcome.kind) : code_;
  }

 private:
  void act(const std::vector<Supervisor::Action>& actions) {
    for (const Supervisor::Action& action : actions) {
      if (action.kind == Supervisor::Action::Kind::kSay) tell(self_, action.text);
      const auto done = action.kind == Supervisor::Action::Kind::kRelease ? watch_.release(action.view)
                        : action.kind == Supervisor::Action::Kind::kKill  ? watch_.stop(action.task, true)
                                                                          : Result<>();
      if (!done) tell(self_, done.error().message);
    }
    // The end is one word for all, whoever they are and whenever they come.
    if (!supervisor_.decided() || std::exchange(told_end_, true)) return;
    const auto told = tell_end(*supervisor_.decided());
    if (!told) tell(self_, told.error().message);
  }

  Result<> tell_end(const JobOutcome& outcome) {
    if (outcome.kind == JobOutcome::Kind::kDone) return watch_.done();
    return watch_.abort(outcome.message, code_of(outcome.kind));
  }

  void reap(steady_clock::time_point now) {
    int status = 0;
    if (agent_ == 0 || ::waitpid(agent_, &status, WNOHANG) != agent_) return;
    agent_ = 0;
    code_ = code_of(status);
    // If it has said how its program ended, that counts; if it was killed nobody else would know for long.
    watch_.presume_lost(self_, "its agent was killed", now + Backoff::kLongest);
  }

  const TaskId self_;
  FolderWatch& watch_;
  pid_t agent_;  // 0 once it was waited for
  Supervisor supervisor_;
  bool told_end_ = false;
  int code_ = kCodeFailed;
};

int lead(const Plan& plan, const SharedFolder& folder, const TaskSpec& spec, FolderTimes times) {
  std::vector<TaskId> tasks;
  for (const PlannedTask& task : plan.tasks) tasks.push_back(task.spec.id);
  auto watch = FolderWatch::begin(folder, plan.job, tasks, times, steady_clock::now());
  if (!watch) return fail_rendezvous(spec.id, watch.error());
  const pid_t parent = ::getpid();
  const pid_t agent = ::fork();
  if (agent < 0) {
    tell(spec.id, fmt::format("cannot start a process: {}", errno_text(errno)));
    return kCodeFailed;
  }
  if (agent == 0) {
    ::setpgid(0, 0);  // what ends the group ends the leader, who then tells everybody
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (::getppid() != parent) ::_exit(kCodeFailed);
    const int code = follow(plan, folder, spec, times);
    std::fflush(nullptr);
    ::_exit(code);
  }
  Interrupts interrupts;
  return Leader(plan, spec.id, **watch, agent).run(interrupts);
}

}  // namespace

TaskId rendezvous_leader(const Plan& plan) {
  constexpr std::array kOrder = {TaskRole::kChief, TaskRole::kScheduler, TaskRole::kServer, TaskRole::kWorker,
                                 TaskRole::kEvaluator};
  for (const TaskRole role : kOrder) {
    if (plan.find({role, 0}) != nullptr) return {role, 0};
  }
  return plan.tasks.at(0).spec.id;
}

int run_rendezvous(const Plan& plan, const RendezvousOptions& options) {
  const PlannedTask* const planned = plan.find(options.task);
  if (planned == nullptr) {
    return fail_rendezvous(options.task, invalid("is none of the {} tasks of this job", plan.tasks.size()));
  }
  const auto folder = SharedFolder::make(options.shared, plan.job);
  if (!folder) return fail_rendezvous(options.task, folder.error());
  const auto attempt = next_attempt(*folder, options.task);
  if (!attempt) return fail_rendezvous(options.task, attempt.error());
  TaskSpec spec = planned->spec;
  spec.attempt = *attempt;
  const bool leads = options.task == rendezvous_leader(plan);
  return leads ? lead(plan, *folder, spec, options.times) : follow(plan, *folder, spec, options.times);
}

}  // namespace pscloud

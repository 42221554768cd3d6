#include "launch/launcher.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <thread>

#include "base/random.h"
#include "launch/cloud/machine_keeper.h"
#include "launch/run_samples.h"

namespace pscloud {
namespace {

constexpr std::chrono::seconds kLongestSleep{60};
constexpr std::chrono::milliseconds kSearchEvery{250};

int outcome_code(JobOutcome::Kind kind) {
  switch (kind) {
    case JobOutcome::Kind::kDone: return 0;
    case JobOutcome::Kind::kFailed: return 1;
    case JobOutcome::Kind::kMissing: return 3;
    case JobOutcome::Kind::kInterrupted: return 130;
  }
  return 1;
}

RunState::Step outcome_step(JobOutcome::Kind kind) {
  switch (kind) {
    case JobOutcome::Kind::kDone: return RunState::Step::kDone;
    case JobOutcome::Kind::kFailed: return RunState::Step::kFailed;
    case JobOutcome::Kind::kMissing: return RunState::Step::kMissing;
    case JobOutcome::Kind::kInterrupted: return RunState::Step::kInterrupted;
  }
  return RunState::Step::kFailed;
}

RunState::Step phase_step(JobPhase phase) {
  if (phase == JobPhase::kWaiting) return RunState::Step::kWaiting;
  return phase == JobPhase::kRunning ? RunState::Step::kRunning : RunState::Step::kStopping;
}

RunState first_state(const Plan& plan) {
  RunState state;
  state.run = plan.run;
  state.job = plan.job;
  state.target = plan.target;
  state.began_unix_ms = unix_ms_now();
  state.cost_usd_per_hour = plan.cost_usd_per_hour;
  state.cost_incomplete = plan.cost_incomplete;
  for (const PlannedTask& task : plan.tasks) {
    state.tasks.push_back(
        {.id = task.spec.id, .state = TaskState::kPlanned, .host = task.host, .address = {}, .code = {}});
  }
  return state;
}

// Hears interruptions while the launcher's own thread is busy with what cannot be asked to end, and calls `heard` with
// how many there were, in a thread of its own.
class InterruptWatch {
 public:
  InterruptWatch(Interrupts& interrupts, std::function<void(int count)> heard)
      : interrupts_(interrupts), heard_(std::move(heard)), over_(::eventfd(0, EFD_CLOEXEC)) {
    thread_ = std::thread([this] { watch(); });
  }
  ~InterruptWatch() { end(); }
  InterruptWatch(const InterruptWatch&) = delete;
  InterruptWatch& operator=(const InterruptWatch&) = delete;

  // How many there were.
  int end() {
    if (!thread_.joinable()) return count_;
    ::eventfd_write(over_.get(), 1);
    thread_.join();
    return count_;
  }

 private:
  void watch() {
    pollfd polled[] = {{over_.get(), POLLIN, 0}, {interrupts_.fd(), POLLIN, 0}};
    while (polled[0].revents == 0) {
      if (::poll(polled, 2, -1) < 0) continue;
      for (int i = interrupts_.take(); i > 0; --i) heard_(++count_);
    }
  }

  Interrupts& interrupts_;
  const std::function<void(int count)> heard_;
  const Fd over_;
  int count_ = 0;  // of the thread, until it has ended
  std::thread thread_;
};

// One run, from the check to the clean-up.
class Launch {
 public:
  Launch(const Plan& plan, Backend& backend, RunFolder& folder, const LaunchOptions& options)
      : plan_(plan),
        backend_(backend),
        folder_(folder),
        options_(options),
        state_(first_state(plan)),
        logs_(folder.path(), plan, options.terminal),
        samples_(folder.path(), plan),
        search_(folder, options.make_supply),
        log_(::open(folder.path("launcher.log").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600)) {}

  Result<LaunchEnd> run() {
    say(plan_summary(plan_));
    if (const std::string unheeded = unheeded_wishes(plan_); !unheeded.empty()) say(unheeded);
    Interrupts interrupts;
    if (auto checked = check(interrupts); !checked) return give_up(std::move(checked.error()), {});
    const MachineKeeper keeper(folder_);
    auto ledger = Ledger::open(folder_.path("ledger.jsonl"));
    if (!ledger) return give_up(std::move(ledger.error()), {});
    state_.step = RunState::Step::kStarting;
    TRY(write_state());
    auto done = start_and_watch(*ledger, interrupts);
    if (const auto flushed = logs_.flush(); !flushed) say(flushed.error().message);
    std::vector<std::string> left = clean(*ledger, interrupts);
    samples_.finish();
    if (const std::string trouble = samples_.trouble(); !trouble.empty()) say(trouble);
    if (!done) return give_up(std::move(done.error()), left);
    return end(*std::move(done), std::move(left));
  }

 private:
  // Nothing is made yet: whatever the check waits for, an interruption ends the process.
  Result<> check(Interrupts& interrupts) {
    const InterruptWatch watch(interrupts, [this](int /*count*/) {
      say("interrupted; nothing was started");
      write_end(RunState::Step::kInterrupted, "interrupted", outcome_code(JobOutcome::Kind::kInterrupted), {});
      leave();
    });
    return backend_.check(plan_);
  }

  // What is being made or removed is in the ledger: whoever does not want to wait for it may leave it there.
  void hear_while(std::string_view what, int count) {
    if (count == 1) {
      say(fmt::format("interrupted while {}: the run ends when that is done; once more leaves at once", what));
      return;
    }
    say(fmt::format("left while {}: `pscloud down` removes what there is", what));
    leave();
  }

  [[noreturn]] void leave() {
    options_.leave();
    ::_exit(outcome_code(JobOutcome::Kind::kInterrupted));
  }

  // How often it was interrupted meanwhile.
  Result<int> start(Ledger& ledger, Interrupts& interrupts) {
    InterruptWatch watch(interrupts, [this](int count) { hear_while("tasks are being started", count); });
    if (const size_t count = plan_.files.size(); count > 0 && plan_.target != "local") {
      say(fmt::format("copying {} to where the tasks run", count == 1 ? "a file or folder" : "files"));
    }
    TRY(backend_.start(plan_, ledger));
    return watch.end();
  }

  Result<JobOutcome> start_and_watch(Ledger& ledger, Interrupts& interrupts) {
    const int interrupted = TRY(start(ledger, interrupts));
    // From here on: what was copied to the machines took its time, and is not for them to make up.
    Supervisor supervisor(plan_, options_.now());
    for (int i = interrupted; i > 0; --i) TRY(act(supervisor.on_interrupt(options_.now()), supervisor, ledger));
    TRY(write_state(supervisor));
    if (interrupted == 0) options_.started();
    while (!supervisor.outcome()) {
      TRY(logs_.flush());
      const auto longest = options_.now() + (search_.is_under_way() ? kSearchEvery : kLongestSleep);
      const auto deadline = std::min(supervisor.next_deadline(), longest);
      const auto events = TRY(backend_.wait(deadline, interrupts.fd()));
      bool changed = false;
      for (const TaskEvent& event : events) {
        const LineLook look = options_.look(event);
        samples_.take(event, unix_ms_now());
        if (event.kind == TaskEvent::Kind::kSample) continue;
        if (event.kind == TaskEvent::Kind::kLine) {
          TRY(logs_.take(event, look));
          continue;
        }
        changed = true;
        TRY(act(supervisor.on_event(event, options_.now()), supervisor, ledger));
      }
      if (search_.is_under_way()) changed = TRY(take_machines(supervisor, ledger)) || changed;
      for (int i = interrupts.take(); i > 0; --i) {
        changed = true;
        TRY(act(supervisor.on_interrupt(options_.now()), supervisor, ledger));
      }
      if (options_.now() >= supervisor.next_deadline()) {
        changed = true;
        TRY(act(supervisor.on_time(options_.now()), supervisor, ledger));
      }
      if (changed) TRY(write_state(supervisor));
    }
    return *supervisor.outcome();
  }

  // True if there was one, or it is clear that there is none.
  Result<bool> take_machines(Supervisor& supervisor, Ledger& ledger) {
    std::vector<std::string> words;
    const std::vector<MachineSearch::Found> all = search_.take(words);
    for (const std::string& line : words) say(line);
    for (const MachineSearch::Found& found : all) {
      if (found.host) machines_.insert_or_assign(found.host->name, *found.host);
      const std::string host = found.host ? found.host->name : "";
      TRY(act(supervisor.on_machine(found.task, host, found.why, options_.now()), supervisor, ledger));
    }
    return !all.empty();
  }

  // What cannot begin anew is lost; the supervisor knows what follows.
  Result<> restart(TaskId task, const Host& host, Supervisor& supervisor, Ledger& ledger) {
    const auto status = std::ranges::find(supervisor.tasks(), task, &TaskStatus::id);
    PlannedTask planned = *plan_.find(task);
    planned.host = host.name;
    planned.spec.advertise = host.interface.empty() ? host.address : host.interface;
    planned.spec.attempt = status->attempt;
    const Plan now = TRY(search_.note(task, planned.spec.attempt, host));
    state_.change_cost(now.cost_usd_per_hour, now.cost_incomplete, unix_ms_now());
    const auto begun = backend_.restart(plan_, planned, host, ledger);
    if (begun) return {};
    const TaskEvent lost{.kind = TaskEvent::Kind::kLost, .task = task, .text = begun.error().message};
    return act(supervisor.on_event(lost, options_.now()), supervisor, ledger);
  }

  Result<> act(const std::vector<Supervisor::Action>& actions, Supervisor& supervisor, Ledger& ledger) {
    for (const Supervisor::Action& action : actions) {
      switch (action.kind) {
        case Supervisor::Action::Kind::kRelease: TRY(backend_.release(action.view)); break;
        case Supervisor::Action::Kind::kStop:
        case Supervisor::Action::Kind::kKill:
          // What cannot be stopped now is found again by clean(), and named if it stays.
          if (const auto stopped = backend_.stop(action.task, action.kind == Supervisor::Action::Kind::kKill);
              !stopped) {
            say(fmt::format("{}: {}", action.task.text(), stopped.error().message));
          }
          break;
        case Supervisor::Action::Kind::kSay: say(action.text); break;
        case Supervisor::Action::Kind::kFindMachine: search_.ask(action.task, action.host, supervisor.tasks()); break;
        case Supervisor::Action::Kind::kRestart:
          TRY(restart(action.task, machines_.at(action.host), supervisor, ledger));
          break;
      }
    }
    return {};
  }

  void say(std::string_view text) {
    options_.say(text);
    note(text);
  }

  // In the log only.
  void note(std::string_view text) {
    const std::string line = fmt::format("{:%Y-%m-%d %H:%M:%S} {}\n", fmt::localtime(std::time(nullptr)), text);
    if (log_ && ::write(log_.get(), line.data(), line.size()) < 0) log_ = Fd();
  }

  Result<> write_state() { return folder_.write("state.json", run_state_json(state_)); }

  Result<> write_state(const Supervisor& supervisor) {
    state_.step = phase_step(supervisor.phase());
    state_.message = supervisor.waiting_for();
    state_.tasks = supervisor.tasks();
    return write_state();
  }

  std::vector<std::string> clean(Ledger& ledger, Interrupts& interrupts) {
    const InterruptWatch watch(interrupts, [this](int count) { hear_while("it is being cleaned up", count); });
    auto left = backend_.clean(plan_, ledger);
    if (!left) return {left.error().message};
    return *std::move(left);
  }

  void write_end(RunState::Step step, std::string message, int code, std::vector<std::string> left) {
    state_.step = step;
    state_.message = std::move(message);
    state_.exit_code = code;
    state_.ended_unix_ms = unix_ms_now();
    state_.left = std::move(left);
    note(fmt::format("run {} {}, exit code {}", plan_.run, step_name(step), code));
    if (const auto wrote = write_state(); !wrote) say(wrote.error().message);
    if (state_.left.empty()) folder_.settle();
  }

  Result<LaunchEnd> end(JobOutcome outcome, std::vector<std::string> left) {
    LaunchEnd end{.outcome = std::move(outcome), .exit_code = 0, .last_lines = {}, .left = left};
    end.exit_code = outcome_code(end.outcome.kind);
    state_.root_cause = end.outcome.root_cause;
    if (end.outcome.root_cause) end.last_lines = logs_.last_lines(*end.outcome.root_cause);
    write_end(outcome_step(end.outcome.kind), end.outcome.message, end.exit_code, std::move(left));
    return end;
  }

  Error give_up(Error error, const std::vector<std::string>& left) {
    say(error.message);
    const bool unreachable = error.code == Code::kUnavailable || error.code == Code::kTimeout;
    const bool wrong_use = error.code == Code::kInvalid || error.code == Code::kNotFound;
    write_end(unreachable ? RunState::Step::kMissing : RunState::Step::kFailed, error.message,
              unreachable ? 3 : (wrong_use ? 2 : 1), left);
    for (const std::string& line : left) error.message += fmt::format("; left: {}", line);
    return error;
  }

  const Plan& plan_;
  Backend& backend_;
  RunFolder& folder_;
  const LaunchOptions& options_;
  RunState state_;
  TaskLogs logs_;
  RunSamples samples_;
  MachineSearch search_;
  std::map<std::string, Host> machines_;  // that were found
  Fd log_;
};

}  // namespace

Result<NewRun> new_run(const std::string& runs, const Job& job, const Cluster& cluster, bool exact) {
  // Begins with a letter: it becomes a name in systems that want one so.
  const std::string job_id = fmt::format("j{:011x}", Random::from_system().next() >> 20);
  Job named = job;
  Plan plan;
  const auto files = [&](const std::string& run) -> Result<std::map<std::string, std::string>> {
    named.run = run;
    plan = TRY(make_plan(named, cluster, job_id));
    TRY(check_wishes(plan));
    return std::map<std::string, std::string>{{"plan.json", plan_json(plan)},
                                              {"cluster.json", cluster_json(cluster)},
                                              {"state.json", run_state_json(first_state(plan))}};
  };
  RunFolder folder = TRY(RunFolder::create(runs, job.run, exact, files));
  return NewRun{std::move(folder), std::move(plan)};
}

Result<LaunchEnd> launch(const Plan& plan, Backend& backend, RunFolder& folder, const LaunchOptions& options) {
  return Launch(plan, backend, folder, options).run();
}

Result<KnownRun> open_run(const RunFolder& folder) {
  const std::string plan_file = TRY(folder.read("plan.json"));
  Plan plan = TRY(parse_plan(plan_file).at(folder.path("plan.json")));
  const std::string cluster_file = TRY(folder.read("cluster.json"));
  const Cluster cluster = TRY(parse_cluster_file(cluster_file, folder.path("cluster.json")));
  auto backend = TRY(make_backend(cluster, folder.path()));
  return KnownRun{std::move(plan), std::move(backend)};
}

Result<std::vector<std::string>> clean_run(RunFolder& folder) {
  TRY(folder.lock());
  RunState state = TRY(folder.state());
  KnownRun run = TRY(open_run(folder));
  Ledger ledger = TRY(Ledger::open(folder.path("ledger.jsonl")));
  if (!state.ended()) {
    state.step = RunState::Step::kLost;
    state.message = "its launcher was killed";
    state.exit_code = 1;
    state.ended_unix_ms = unix_ms_now();
    for (TaskStatus& task : state.tasks) {
      if (!task.ended()) task.state = TaskState::kLost;
    }
    TRY(folder.write("state.json", run_state_json(state)));
  }
  state.left = TRY(run.backend->clean(run.plan, ledger));
  TRY(folder.write("state.json", run_state_json(state)));
  if (state.left.empty()) folder.settle();
  return state.left;
}

}  // namespace pscloud

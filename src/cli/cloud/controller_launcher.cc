#include "cli/cloud/controller_launcher.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>

#include "cli/cloud/cluster_end.h"
#include "cli/exit_code.h"
#include "launch/agent/keep_alive.h"
#include "launch/cloud/cloud_replace.h"
#include "launch/launcher.h"
#include "launch/run_report.h"

namespace pscloud {
namespace {

using std::chrono::steady_clock;

constexpr std::chrono::milliseconds kLookEvery{20};

struct Pipe {
  Fd read_end;
  Fd write_end;
};

Result<Pipe> make_pipe() {
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) return unavailable("cannot make a pipe: {}", errno_text(errno));
  return Pipe{Fd(ends[0]), Fd(ends[1])};
}

// Nobody holds the other end of this pipe any more.
bool is_left(const Fd& line) {
  pollfd polled{line.get(), POLLIN, 0};
  return ::poll(&polled, 1, 0) > 0 && (polled.revents & POLLHUP) != 0;
}

// The last steps of a controller that was killed while its run went on. Nobody lingers: there is nobody to answer.
void end_in_its_place(const ControllerLauncher::Task& task, const std::string& run_folder, bool confirmed) {
  for (const int signal : {SIGTERM, SIGINT}) std::signal(signal, SIG_IGN);  // there is nothing left to stop
  KeepAlive keep_alive;
  std::optional<ClusterEnd> cluster_end;
  // Who was never told of the run has the cluster still, and may use it.
  if (task.charge && confirmed) cluster_end.emplace(*task.charge, run_folder, keep_alive);
  if (cluster_end) {
    cluster_end->save_logs();
    cluster_end->end_others();
  }
  task.put_away();
  if (cluster_end) cluster_end->end_own();
}

// In the process that is the launcher. It goes on if the controller is killed, and then does its last steps too.
[[noreturn]] void be_launcher(NewRun& run, Backend& backend, const ControllerLauncher::Task& task, Fd started,
                              const Fd& line) {
  for (const int signal : {SIGPIPE, SIGHUP}) std::signal(signal, SIG_DFL);  // programs inherit what is ignored
  const Fd nothing(::open("/dev/null", O_RDWR | O_CLOEXEC));
  const Fd log(::open(run.folder.path("launcher.log").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  ::dup2(nothing.get(), STDIN_FILENO);
  ::dup2(nothing.get(), STDOUT_FILENO);
  ::dup2(log ? log.get() : nothing.get(), STDERR_FILENO);
  int code = kExitFailed;
  if (run.folder.write_watcher()) {
    LaunchOptions options;
    KeepAlive keep_alive;
    // Samples of tasks come all the time.
    options.look = [&](const TaskEvent& event) {
      keep_alive.beat(steady_clock::now());
      return show_all(event);
    };
    options.started = [&] {
      if (::write(started.get(), "+", 1) == 1) started = Fd();
    };
    if (task.charge) {
      options.make_supply = [&](const Cluster&) {
        return make_cloud_supply(task.charge->cluster, charge_variables(*task.charge));
      };
    }
    const auto end = launch(run.plan, backend, run.folder, options);
    code = end ? end->exit_code : exit_code(end.error().code);
  }
  if (is_left(line)) {
    char byte = 0;
    end_in_its_place(task, run.folder.path(), ::read(line.get(), &byte, 1) == 1);
  }
  std::fflush(nullptr);
  ::_exit(code);
}

bool is_timeout(const Result<std::vector<std::string>>& stopped) {
  return !stopped && stopped.error().code == Code::kTimeout;
}

}  // namespace

Result<ControllerLauncher> ControllerLauncher::start(const Task& task, const std::string& runs, Fd& out) {
  TRY(make_backend(task.cluster, ""));
  if (task.charge) TRY(take_charge(*task.charge));
  NewRun run = TRY(new_run(runs, task.job, task.cluster, task.named));
  const auto backend = TRY(make_backend(task.cluster, run.folder.path()));
  Pipe started = TRY(make_pipe());
  Pipe line = TRY(make_pipe());
  const pid_t pid = ::fork();
  if (pid < 0) return unavailable("cannot start a process: {}", errno_text(errno));
  if (pid == 0) {
    out = Fd();
    line.write_end = Fd();
    be_launcher(run, *backend, task, std::move(started.write_end), line.read_end);
  }
  started.write_end = Fd();
  char byte = 0;
  ssize_t got = 0;
  while ((got = ::read(started.read_end.get(), &byte, 1)) < 0 && errno == EINTR) continue;
  if (got == 1) return ControllerLauncher(runs, run.folder.name(), pid, std::move(line.write_end));
  while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) continue;
  const auto state = run.folder.state();
  if (!state) return state.error();
  return Error{state->step == RunState::Step::kMissing ? Code::kUnavailable : Code::kFailed, state->message};
}

void ControllerLauncher::confirm() {
  // It fails if the launcher has ended already, who then needs it no more.
  if (::write(line_.get(), "+", 1) < 0) line_ = Fd();
}

bool ControllerLauncher::has_ended() const {
  siginfo_t info{};
  // Its number stays its own until end() takes it.
  return ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid != 0;
}

bool ControllerLauncher::wait(std::chrono::milliseconds time) const {
  const auto deadline = steady_clock::now() + time;
  while (!has_ended() && steady_clock::now() < deadline) ::poll(nullptr, 0, static_cast<int>(kLookEvery.count()));
  return has_ended();
}

void ControllerLauncher::end(const Patience& patience) {
  auto folder = RunFolder::open(runs_, run_);
  if (folder) {
    const int at_once_ms = static_cast<int>(patience.at_once.count());
    auto left = stop_run(*folder, false, static_cast<int>(patience.grace.count()));
    if (is_timeout(left)) left = stop_run(*folder, true, at_once_ms);
    if (is_timeout(left)) {
      ::kill(pid_, SIGKILL);
      left = stop_run(*folder, true, at_once_ms);  // which is to clean up after it now
    }
    if (!left) fmt::print(stderr, "controller: {}\n", left.error().message);
  }
  if (!wait(patience.at_once)) ::kill(pid_, SIGKILL);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) continue;
}

}  // namespace pscloud

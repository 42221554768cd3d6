#include "launch/agent/task_runner.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>  // NOLINT: kill() is POSIX
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <fstream>

#include "base/check.h"
#include "launch/agent/agent_message.h"
#include "launch/agent/own_address.h"
#include "launch/agent/task_program.h"
#include "launch/contract/contract.h"
#include "launch/process/processes.h"
#include "launch/process/spawn.h"
#include "launch/process/write_all.h"

namespace pscloud {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

// A launcher gives up first, and names who is missing: an agent only does so when it is not told.
constexpr milliseconds kAfterTheLauncher{60000};
// For the last lines of a program whose processes are all gone; who still holds its pipe then is none of ours.
constexpr milliseconds kDrainTime{2000};
constexpr int kKillTimeoutMs = 5000;
// Taken at once, so that a program that writes without end does not keep the agent from its other work.
constexpr int kReadsAtOnce = 16;
// Where nodes of ours serve what they know of themselves, unless the user has said so (docs/node-environment.md).
constexpr const char* kHttpVariable = "PSCLOUD_HTTP";

std::string mark_of(const TaskSpec& spec) { return fmt::format("{}={}/{}", kTaskMark, spec.job, spec.id.text()); }

int64_t unix_us_now() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::microseconds>(now).count();
}

Result<> make_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (!error) fs::permissions(folder, fs::perms::owner_all, error);
  if (error) return unavailable("cannot make the folder '{}': {}", folder.string(), error.message());
  return {};
}

Result<> write_private(const fs::path& path, std::string_view content) {
  const Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!file) return unavailable("cannot make '{}': {}", path.string(), errno_text(errno));
  return write_all(file.get(), content).at(path.string());
}

}  // namespace

TaskRunner::TaskRunner(TaskSpec spec, Random& random, Time now)
    : spec_(std::move(spec)), view_deadline_(now + milliseconds(spec_.arrive_timeout_ms) + kAfterTheLauncher) {
  const auto ready = prepare(random);
  if (!ready) {
    lost_ = true;
    finish();
    say({.kind = TaskEvent::Kind::kLost, .task = spec_.id, .text = ready.error().message});
    return;
  }
  say({.kind = TaskEvent::Kind::kArrived, .task = spec_.id, .host = own_host_name(), .address = address_});
}

TaskRunner::~TaskRunner() {
  if (state_ == State::kEnded) return;
  kill_everything();
  if (pid_ != 0) ::waitpid(pid_, nullptr, 0);
  finish();
}

Result<> TaskRunner::prepare(Random& random) {
  if (spec_.command.empty()) return invalid("there is no command to run");
  TRY(make_private_files());
  lease_ = TRY(PortLease::take(random, spec_.port == 0 ? leased_ports() : PortRange{spec_.port, spec_.port}));
  address_ = {TRY(own_address(spec_.advertise)), lease_->port()};
  return {};
}

Result<> TaskRunner::make_private_files() {
  if (spec_.private_folder.empty()) {
    std::string pattern = (fs::temp_directory_path() / "pscloud-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) {
      return unavailable("cannot make a folder in {}: {}", fs::temp_directory_path().string(), errno_text(errno));
    }
    private_folder_ = pattern;
  } else {
    private_folder_ = fs::absolute(spec_.private_folder).string();
    TRY(make_folder(private_folder_));
  }
  for (const TaskFile& file : spec_.files) {
    const fs::path path = fs::path(private_folder_) / file.name;
    TRY(make_folder(path.parent_path()));
    TRY(write_private(path, file.content));
    if (!file.variable.empty()) {
      file_variables_.emplace_back(file.variable, file.name_folder ? path.parent_path().string() : path.string());
    }
  }
  return {};
}

Result<> TaskRunner::note_process(pid_t pid) const {
  const auto process = identify_process(pid);
  if (!process) return unavailable("a process was gone before it began");
  return write_private(fs::path(private_folder_) / kProcessFile, process->text());
}

Result<pid_t> TaskRunner::run_program(const ClusterView& view) {
  TaskProgram program =
      TRY(task_program(spec_, contract_of(spec_.framework, view, spec_.id, spec_.run), file_variables_));
  const std::string mark = mark_of(spec_);
  set_variable(program.environment, kTaskMark, mark.substr(mark.find('=') + 1));
  if (spec_.spot) {
    set_variable(program.environment, kNoticeVariable, (fs::path(private_folder_) / kNoticeFile).string());
  }
  if (const fs::path nodes = fs::path(private_folder_) / kStatusFolder;
      variable_of(program.environment, kHttpVariable).empty() && make_folder(nodes)) {
    set_variable(program.environment, kHttpVariable, fmt::format("unix:{}/", nodes.string()));
    nodes_.emplace(nodes.string());
  }
  SpawnSpec process;
  process.program = std::move(program.path);
  process.arguments = std::move(program.arguments);
  process.environment = std::move(program.environment);
  process.folder = spec_.folder;
  process.own_session = true;
  process.dies_with_us = true;
  process.before_it_runs = [this](pid_t pid) -> Result<> {
    TRY(note_process(pid));
    // Its process has a copy, which exec closes: nobody else gets the port before, and it is free for the program's
    // first instruction. The lease goes on.
    lease_->let_bind();
    return {};
  };
  std::vector<Fd> ends;
  for (const bool is_stderr : {false, true}) {
    int pipe[2];
    if (::pipe2(pipe, O_CLOEXEC) != 0) return unavailable("cannot make a pipe: {}", errno_text(errno));
    ::fcntl(pipe[0], F_SETFL, O_NONBLOCK);
    outputs_.push_back({Fd(pipe[0]), LineBuffer(kProgramLineMax), is_stderr});
    ends.emplace_back(pipe[1]);
  }
  process.stdout_fd = ends[0].get();
  process.stderr_fd = ends[1].get();
  return spawn(process);
}

void TaskRunner::release(const ClusterView& view, Time now) {
  if (state_ != State::kWaiting || view.find(spec_.id) == nullptr) return;
  const auto pid = run_program(view);
  if (pid) {
    pid_ = *pid;
    started_ = now;
    state_ = State::kRunning;
    say({.kind = TaskEvent::Kind::kRunning, .task = spec_.id, .pid = pid_});
    return;
  }
  // As a shell says it: 127 for a program that is not there, 126 for one that cannot be run.
  say_line(fmt::format("pscloud: cannot run {}", pid.error().message), true, false);
  code_ = pid.error().code == Code::kNotFound ? 127 : 126;
  ended_unix_us_ = unix_us_now();
  ended_ = now;
  state_ = State::kDraining;
  drain_deadline_ = now;
}

void TaskRunner::stop(bool at_once, Time now) {
  if (state_ == State::kWaiting) {
    signal_ = SIGTERM;
    finish();
    say({.kind = TaskEvent::Kind::kExited, .task = spec_.id, .signal = signal_});
    return;
  }
  if (state_ != State::kRunning) return;
  if (at_once) {
    kill_at_ = now;
  } else if (!kill_at_) {
    ::kill(-pid_, SIGTERM);
    ::kill(-pid_, SIGCONT);  // one that stands still would not hear it
    kill_at_ = now + milliseconds(spec_.stop_grace_ms);
  }
}

void TaskRunner::take_notice(const SpotNotice& notice, int left_s) {
  if (state_ != State::kWaiting && state_ != State::kRunning) return;
  // Before the launcher hears of it: who is then told to end must know why. Without it the end is only less orderly.
  (void)write_private(fs::path(private_folder_) / kNoticeFile,
                      fmt::format("{}\n", notice.at.time_since_epoch().count()));
  say({.kind = TaskEvent::Kind::kNotice, .task = spec_.id, .text = notice.action, .seconds = left_s});
}

bool TaskRunner::on_child_end(pid_t pid, int wait_status, Time now) {
  if (pid_ == 0 || pid != pid_ || state_ != State::kRunning) return false;
  // As soon as it is known: the rest takes time, in which others end because of this one.
  if (!kill_at_) ended_unix_us_ = unix_us_now();
  ended_ = now;
  if (WIFSIGNALED(wait_status)) {
    signal_ = WTERMSIG(wait_status);
  } else {
    code_ = WEXITSTATUS(wait_status);
  }
  kill_everything();
  state_ = State::kDraining;
  drain_deadline_ = now + kDrainTime;
  return true;
}

// All that the program has started: its group, and those that left the group, which came to us when their parents died.
void TaskRunner::kill_everything() {
  if (pid_ == 0) return;
  ::kill(-pid_, SIGKILL);
  const std::string mark = mark_of(spec_);
  kill_all(
      [&] {
        std::vector<ProcessIdentity> left;
        for (const pid_t pid : own_descendants()) {
          auto process = identify_process(pid);
          if (process && (pid == pid_ || has_entry(pid, mark, false))) left.push_back(*std::move(process));
        }
        return left;
      },
      kKillTimeoutMs);
}

void TaskRunner::work(bool read_lines, Time now) {
  if (state_ == State::kWaiting && now >= view_deadline_) {
    lost_ = true;
    finish();
    say({.kind = TaskEvent::Kind::kLost,
         .task = spec_.id,
         .text = fmt::format("waited {} s for the others", spec_.arrive_timeout_ms / 1000)});
  }
  if (state_ == State::kRunning && kill_at_ && now >= *kill_at_) {
    ::kill(-pid_, SIGKILL);
    kill_at_ = now + milliseconds(1000);
  }
  if (nodes_) {
    if (auto look = nodes_->work(now)) tell_nodes(*std::move(look));
  }
  if (read_lines) {
    for (Output& output : outputs_) read_output(output, false);
    std::erase_if(outputs_, [](const Output& output) { return !output.fd; });
  }
  if (state_ == State::kDraining && (outputs_.empty() || now >= drain_deadline_)) {
    for (Output& output : outputs_) read_output(output, true);
    finish();
    say({.kind = TaskEvent::Kind::kExited,
         .task = spec_.id,
         .code = code_,
         .signal = signal_,
         .ended_unix_us = ended_unix_us_,
         .ended_ago = std::chrono::duration_cast<std::chrono::microseconds>(Time::clock::now() - ended_)});
  }
}

void TaskRunner::read_output(Output& output, bool to_the_end) {
  std::array<char, 64 << 10> bytes;
  for (int i = 0; i < kReadsAtOnce && output.fd; ++i) {
    const ssize_t count = ::read(output.fd.get(), bytes.data(), bytes.size());
    if (count < 0) break;
    output.lines.add({bytes.data(), static_cast<size_t>(count)});
    while (auto line = output.lines.next()) say_line(std::move(line->text), output.is_stderr, line->continues);
    if (count == 0) output.fd = Fd();
  }
  if (to_the_end) output.fd = Fd();
  if (output.fd) return;
  if (std::string rest = output.lines.rest(); !rest.empty()) say_line(std::move(rest), output.is_stderr, false);
}

std::optional<SampledTask> TaskRunner::sampled() const {
  if (state_ != State::kRunning) return std::nullopt;
  return SampledTask{pid_, started_, mark_of(spec_)};
}

void TaskRunner::take_sample(Figures figures) {
  say({.kind = TaskEvent::Kind::kSample, .task = spec_.id, .figures = std::move(figures)});
}

void TaskRunner::ask_nodes(Time now) {
  if (state_ == State::kRunning && nodes_) nodes_->ask(now);
}

void TaskRunner::tell_nodes(NodeProbe::Look look) {
  if (state_ != State::kRunning) return;
  // What has not changed need not be said again.
  if (look.status == last_status_) {
    look.status.clear();
  } else {
    last_status_ = look.status;
  }
  if (look.figures.empty() && look.status.empty()) return;
  say({.kind = TaskEvent::Kind::kSample,
       .task = spec_.id,
       .text = std::move(look.status),
       .figures = std::move(look.figures)});
}

void TaskRunner::finish() {
  state_ = State::kEnded;
  nodes_.reset();
  outputs_.clear();
  lease_.reset();
  std::error_code ignored;
  if (!private_folder_.empty()) fs::remove_all(private_folder_, ignored);
  // That of the job, if this was its last task here.
  if (!spec_.private_folder.empty()) ::rmdir(fs::path(private_folder_).parent_path().c_str());
}

void TaskRunner::add_to(std::vector<pollfd>& polled, bool read_lines) const {
  if (nodes_) nodes_->add_to(polled);
  if (!read_lines) return;
  for (const Output& output : outputs_) polled.push_back({output.fd.get(), POLLIN, 0});
}

TaskRunner::Time TaskRunner::next_deadline() const {
  if (state_ == State::kWaiting) return view_deadline_;
  if (state_ == State::kDraining) return drain_deadline_;
  const Time asked = nodes_ && nodes_->is_asking() ? nodes_->deadline() : Time::max();
  return std::min(asked, kill_at_.value_or(Time::max()));
}

std::vector<TaskEvent> TaskRunner::take_events() {
  std::vector<TaskEvent> events(std::make_move_iterator(events_.begin()), std::make_move_iterator(events_.end()));
  events_.clear();
  return events;
}

int TaskRunner::exit_code() const {
  if (lost_) return 1;
  return signal_ != 0 ? 128 + signal_ : code_;
}

void TaskRunner::say(TaskEvent event) { events_.push_back(std::move(event)); }

void TaskRunner::say_line(std::string text, bool is_stderr, bool continues) {
  say({.kind = TaskEvent::Kind::kLine,
       .task = spec_.id,
       .text = std::move(text),
       .is_stderr = is_stderr,
       .continues = continues});
}

}  // namespace pscloud

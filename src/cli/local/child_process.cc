#include "cli/local/child_process.h"

#include <fmt/core.h>
#include <signal.h>  // NOLINT: kill() is POSIX
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <fstream>
#include <limits>
#include <thread>

#include "launch/process/own_program.h"
#include "launch/process/spawn.h"

namespace pscloud {
namespace {

constexpr double kNotTold = std::numeric_limits<double>::quiet_NaN();

std::string how_it_ended(int status) {
  if (WIFSIGNALED(status)) return fmt::format("was ended by {}", ::strsignal(WTERMSIG(status)));
  return fmt::format("ended with exit code {}", WEXITSTATUS(status));
}

}  // namespace

Result<ChildProcess> ChildProcess::start(const std::vector<std::string>& arguments,
                                         const std::vector<std::string>& environment, Fd socket,
                                         const std::string& program) {
  SpawnSpec process;
  process.arguments = program.empty() ? own_program() : std::vector{program};
  process.program = process.arguments.front();
  process.arguments.insert(process.arguments.end(), arguments.begin(), arguments.end());
  process.environment = inherited_environment();
  process.environment.insert(process.environment.end(), environment.begin(), environment.end());
  process.stdin_fd = process.stdout_fd = socket.get();
  process.dies_with_us = true;
  const pid_t pid = TRY(spawn(process));
  return ChildProcess(pid);
}

ChildProcess::~ChildProcess() {
  if (pid_ < 0) return;
  ::kill(-pid_, SIGKILL);  // what it has started too
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) continue;
}

Result<> ChildProcess::wait(std::chrono::milliseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  int status = 0;
  while (true) {
    const pid_t ended = ::waitpid(pid_, &status, WNOHANG);
    if (ended == pid_) break;
    if (ended < 0 && errno != EINTR) return job_failed("cannot wait for process {}: {}", pid_, errno_text(errno));
    if (std::chrono::steady_clock::now() >= deadline) {
      return job_failed("process {} has not ended within {} ms", pid_, timeout.count());
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  const pid_t pid = std::exchange(pid_, -1);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  return job_failed("process {} {}", pid, how_it_ended(status));
}

bool ChildProcess::has_ended() const {
  if (pid_ < 0) return true;
  siginfo_t info{};
  // Without taking its status away.
  return ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == pid_;
}

double ChildProcess::cpu_s_of(pid_t pid) {
  clockid_t clock{};
  timespec time{};
  if (::clock_getcpuclockid(pid, &clock) != 0 || ::clock_gettime(clock, &time) != 0) return kNotTold;
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

namespace {

struct ProcessPages {
  double resident = kNotTold;
  double shared = kNotTold;  // of these: of files, and memory of several processes
};

ProcessPages pages_of(pid_t pid) {
  std::ifstream file(pid == 0 ? "/proc/self/statm" : fmt::format("/proc/{}/statm", pid));
  uint64_t size = 0, resident = 0, shared = 0;
  if (!(file >> size >> resident >> shared)) return {};
  return {static_cast<double>(resident), static_cast<double>(shared)};
}

}  // namespace

double ChildProcess::resident_bytes_of(pid_t pid) {
  return pages_of(pid).resident * static_cast<double>(::sysconf(_SC_PAGESIZE));
}

double ChildProcess::own_bytes_of(pid_t pid) {
  const ProcessPages pages = pages_of(pid);
  return (pages.resident - pages.shared) * static_cast<double>(::sysconf(_SC_PAGESIZE));
}

}  // namespace pscloud

#include "cli/child_process.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <signal.h>  // NOLINT: <csignal> does not promise sigset_t
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <fstream>
#include <limits>
#include <string_view>
#include <thread>

namespace pscloud {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

std::vector<std::string> inherited_environment() {
  std::vector<std::string> kept;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    if (!text.starts_with("PSCLOUD_") && !text.starts_with("DMLC_")) kept.emplace_back(text);
  }
  return kept;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

// In the child, where only what is safe in a signal handler may be called: other threads were not copied, but their
// locks were. Returns only if it failed.
void become(const char* program, char* const* arguments, char* const* environment, int socket, pid_t parent) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) return;  // it died before it could be watched
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  if (::dup2(socket, STDIN_FILENO) < 0 || ::dup2(socket, STDOUT_FILENO) < 0) return;
  ::execve(program, arguments, environment);
}

std::string how_it_ended(int status) {
  if (WIFSIGNALED(status)) return fmt::format("was ended by {}", ::strsignal(WTERMSIG(status)));
  return fmt::format("ended with exit code {}", WEXITSTATUS(status));
}

}  // namespace

Result<ChildProcess> ChildProcess::start(const std::vector<std::string>& arguments,
                                         const std::vector<std::string>& environment, Fd socket,
                                         const std::string& program) {
  std::vector<std::string> all_arguments{"pscloud"};
  all_arguments.insert(all_arguments.end(), arguments.begin(), arguments.end());
  std::vector<std::string> all_environment = inherited_environment();
  all_environment.insert(all_environment.end(), environment.begin(), environment.end());
  const std::vector<char*> argument_pointers = pointers(all_arguments);
  const std::vector<char*> environment_pointers = pointers(all_environment);

  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return unavailable("cannot start a process: {}", errno_text(errno));
  if (pid == 0) {
    become(program.c_str(), argument_pointers.data(), environment_pointers.data(), socket.get(), parent);
    ::_exit(127);
  }
  ::setpgid(pid, pid);  // the child does the same: whoever comes first
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

double ChildProcess::cpu_s_of(pid_t pid) {
  clockid_t clock{};
  timespec time{};
  if (::clock_getcpuclockid(pid, &clock) != 0 || ::clock_gettime(clock, &time) != 0) return kUnknown;
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

double ChildProcess::resident_bytes_of(pid_t pid) {
  std::ifstream file(pid == 0 ? "/proc/self/statm" : fmt::format("/proc/{}/statm", pid));
  uint64_t size = 0, resident = 0;
  if (!(file >> size >> resident)) return kUnknown;
  return static_cast<double>(resident) * static_cast<double>(::sysconf(_SC_PAGESIZE));
}

}  // namespace pscloud

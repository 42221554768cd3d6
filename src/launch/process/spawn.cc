#include "launch/process/spawn.h"

#include <fcntl.h>
#include <signal.h>  // NOLINT: <csignal> does not promise sigset_t
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "base/fd.h"

namespace pscloud {
namespace {

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

struct Image {
  const SpawnSpec& spec;
  char* const* arguments;
  char* const* environment;
  int way;  // readable when the program may run
  pid_t parent;
};

bool put(int fd, int place) {
  if (fd == place) return ::fcntl(fd, F_SETFD, 0) == 0;  // it may be one that exec closes
  return fd < 0 || ::dup2(fd, place) == place;
}

// In the child, where only what is safe in a signal handler may be called: other threads were not copied, but their
// locks were. Returns only if it failed, with errno.
void become(const Image& image) {
  const SpawnSpec& spec = image.spec;
  if (spec.own_session) {
    ::setsid();
  } else {
    ::setpgid(0, 0);
  }
  if (spec.dies_with_us) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != image.parent) return;  // it died before it could be watched
  }
  ::signal(SIGPIPE, SIG_DFL);  // what is ignored stays so through exec
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  // Before what can fail: who looks at this process before it runs must find it.
  char go = 0;
  if (::read(image.way, &go, 1) != 1) ::_exit(127);
  const int nothing = spec.stdin_fd < 0 ? ::open("/dev/null", O_RDONLY | O_CLOEXEC) : spec.stdin_fd;
  if (!put(nothing, STDIN_FILENO) || !put(spec.stdout_fd, STDOUT_FILENO) || !put(spec.stderr_fd, STDERR_FILENO)) return;
  if (!spec.folder.empty() && ::chdir(spec.folder.c_str()) != 0) return;
  ::execve(spec.program.c_str(), image.arguments, image.environment);
}

// Sockets, because a pipe whose reader is gone sends a signal.
struct Way {
  Fd child;
  Fd parent;
};
Result<Way> make_way() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return unavailable("cannot make a socket: {}", errno_text(errno));
  }
  return Way{Fd(ends[0]), Fd(ends[1])};
}

// Above the three that become() replaces: this process may have been started without them.
Result<Fd> above_standard(Fd fd) {
  if (fd.get() > STDERR_FILENO) return fd;
  Fd copy(::fcntl(fd.get(), F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
  if (!copy) return unavailable("cannot copy a descriptor: {}", errno_text(errno));
  return copy;
}

Error why_not(const SpawnSpec& spec, int error) {
  if (!spec.folder.empty() && ::access(spec.folder.c_str(), X_OK) != 0) {
    return invalid("cannot work in '{}': {}", spec.folder, errno_text(errno));
  }
  if (error == ENOENT) return not_found("'{}': {}", spec.program, errno_text(error));
  return invalid("'{}': {}", spec.program, errno_text(error));
}

}  // namespace

Result<pid_t> spawn(const SpawnSpec& spec) {
  std::vector<std::string> arguments = spec.arguments;
  std::vector<std::string> environment = spec.environment;
  const std::vector<char*> argument_pointers = pointers(arguments);
  const std::vector<char*> environment_pointers = pointers(environment);
  auto [child, ours] = TRY(make_way());
  child = TRY(above_standard(std::move(child)));
  const Image image{spec, argument_pointers.data(), environment_pointers.data(), child.get(), ::getpid()};

  const pid_t pid = ::fork();
  if (pid < 0) return unavailable("cannot start a process: {}", errno_text(errno));
  if (pid == 0) {
    ::close(ours.get());  // or it would wait for itself
    become(image);
    const int error = errno;
    (void)!::send(child.get(), &error, sizeof error, MSG_NOSIGNAL);
    ::_exit(127);
  }
  if (!spec.own_session) ::setpgid(pid, pid);  // the child does the same: whoever comes first
  child = Fd();
  Result<> ready = spec.before_it_runs ? spec.before_it_runs(pid) : Result<>();
  if (ready) (void)!::send(ours.get(), "g", 1, MSG_NOSIGNAL);
  ::shutdown(ours.get(), SHUT_WR);
  // Closed by exec, or the reason why not.
  int error = 0;
  ssize_t got = 0;
  while ((got = ::recv(ours.get(), &error, sizeof error, 0)) < 0 && errno == EINTR) continue;
  if (ready && got == 0) return pid;
  while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) continue;
  if (!ready) return ready.error();
  return why_not(spec, error);
}

std::string own_variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::vector<std::string> inherited_environment() {
  std::vector<std::string> kept;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    if (!text.starts_with("PSCLOUD_") && !text.starts_with("DMLC_")) kept.emplace_back(text);
  }
  return kept;
}

void unset_variable(std::vector<std::string>& environment, std::string_view name) {
  std::erase_if(environment, [name](const std::string& entry) {
    return entry.size() > name.size() && entry[name.size()] == '=' && entry.starts_with(name);
  });
}

void set_variable(std::vector<std::string>& environment, std::string_view name, std::string_view value) {
  unset_variable(environment, name);
  environment.push_back(std::string(name) + "=" + std::string(value));
}

std::string variable_of(const std::vector<std::string>& environment, std::string_view name) {
  for (const std::string& entry : environment) {
    if (entry.size() > name.size() && entry[name.size()] == '=' && entry.starts_with(name)) {
      return entry.substr(name.size() + 1);
    }
  }
  return "";
}

}  // namespace pscloud

#include "launch/swarm/ssh_dial.h"

#include <signal.h>  // NOLINT: kill() is POSIX
#include <sys/wait.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <memory>
#include <vector>

#include "base/text.h"
#include "launch/process/spawn.h"

namespace pscloud {
namespace {

// Logins that were made and perhaps still run. One thread.
class SshLogins {
 public:
  explicit SshLogins(std::vector<std::string> arguments) : arguments_(std::move(arguments)) {}
  SshLogins(const SshLogins&) = delete;
  SshLogins& operator=(const SshLogins&) = delete;

  ~SshLogins() {
    for (const pid_t pid : running_) {
      ::kill(pid, SIGTERM);
      while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) continue;
    }
  }

  Result<> carry(const Fd& connection) {
    std::erase_if(running_, [](pid_t pid) { return ::waitpid(pid, nullptr, WNOHANG) != 0; });
    SpawnSpec ssh;
    ssh.program = "/usr/bin/env";
    ssh.arguments = arguments_;
    ssh.environment = inherited_environment();
    ssh.stdin_fd = ssh.stdout_fd = connection.get();
    ssh.dies_with_us = true;
    running_.push_back(TRY(spawn(ssh)));
    return {};
  }

 private:
  const std::vector<std::string> arguments_;
  std::vector<pid_t> running_;
};

bool is_plain(std::string_view text) {
  return !text.empty() && text.front() != '-' && std::ranges::all_of(text, [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           std::string_view("._-:%").find(c) != std::string_view::npos;
  });
}

}  // namespace

Result<std::function<Result<>(Fd)>> ssh_dial(const std::string& address) {
  const Error wrong = invalid("'{}' is no address like ssh://user@host or ssh://user@host:22", address);
  constexpr std::string_view kScheme = "ssh://";
  std::string_view rest = address;
  if (!rest.starts_with(kScheme)) return wrong;
  rest.remove_prefix(kScheme.size());
  if (rest.ends_with('/')) rest.remove_suffix(1);
  std::vector<std::string> arguments{"env", "ssh", "-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10"};
  if (const size_t at = rest.find('@'); at != std::string_view::npos) {
    if (!is_plain(rest.substr(0, at))) return wrong;
    arguments.insert(arguments.end(), {"-l", std::string(rest.substr(0, at))});
    rest.remove_prefix(at + 1);
  }
  const size_t colon = rest.rfind(':');
  if (colon != std::string_view::npos && !rest.ends_with(']')) {
    int port = 0;
    if (!parse_number(rest.substr(colon + 1), 1, 65535, port)) return wrong;
    arguments.insert(arguments.end(), {"-p", std::to_string(port)});
    rest = rest.substr(0, colon);
  }
  if (rest.starts_with('[') && rest.ends_with(']')) rest = rest.substr(1, rest.size() - 2);
  if (!is_plain(rest)) return wrong;
  arguments.insert(arguments.end(), {"--", std::string(rest), "docker", "system", "dial-stdio"});
  auto logins = std::make_shared<SshLogins>(std::move(arguments));
  return std::function<Result<>(Fd)>([logins](const Fd& connection) { return logins->carry(connection); });
}

}  // namespace pscloud

#include "launch/host/ssh_logins.h"

#include <signal.h>  // NOLINT: kill() is POSIX
#include <sys/wait.h>

#include <cerrno>

#include "launch/process/spawn.h"

namespace pscloud {
namespace {

std::vector<std::string> found_by_env(std::vector<std::string> command) {
  command.insert(command.begin(), "env");
  return command;
}

}  // namespace

SshLogins::SshLogins(std::vector<std::string> command) : arguments_(found_by_env(std::move(command))) {}

SshLogins::~SshLogins() {
  for (const pid_t pid : running_) {
    ::kill(pid, SIGTERM);
    while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) continue;
  }
}

Result<> SshLogins::carry(const Fd& connection) {
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

}  // namespace pscloud

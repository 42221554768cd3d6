#include "launch/host/ssh_tunnel.h"

#include <fmt/core.h>
#include <poll.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>

#include "launch/process/processes.h"
#include "launch/process/spawn.h"

namespace pscloud {
namespace {

using std::chrono::steady_clock;

constexpr std::chrono::seconds kToLogIn{30};
constexpr const char* kEcho = "pscloud-tunnel";

// Says back what it hears: the login is there then, and goes when we do.
Result<> wait_for_echo(AgentConnection& login, const Host& host) {
  const auto deadline = steady_clock::now() + kToLogIn;
  LineStream& lines = login.stream().lines();
  lines.send_line(kEcho);
  while (steady_clock::now() < deadline) {
    login.read_complaints();
    while (const auto line = lines.next_line()) {
      if (*line == kEcho) return {};
    }
    if (lines.broken()) {
      const std::string why = login.why();
      return unavailable("{} ({}): {}", host.name, host.address, explain_ssh(host, login.complaints(), why));
    }
    std::vector<pollfd> polled;
    login.add_to(polled);
    ::poll(polled.data(), polled.size(), 1000);
  }
  return timed_out("{} ({}) does not answer", host.name, host.address);
}

}  // namespace

SshTunnel::SshTunnel(std::string folder, AgentConnection login, std::vector<std::string> command)
    : folder_(std::move(folder)), login_(std::move(login)), logins_(std::move(command)) {}

SshTunnel::~SshTunnel() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

Result<std::unique_ptr<SshTunnel>> SshTunnel::open(const Host& host, SshOptions options, uint16_t port) {
  char folder[] = "/tmp/pscloud-tunnel-XXXXXX";  // the path of a socket is short
  if (::mkdtemp(folder) == nullptr) return unavailable("cannot make a folder in /tmp");
  options.control_folder = folder;
  const auto begun = [&]() -> Result<AgentConnection> {
    const std::vector<std::string> environment = inherited_environment();
    const auto ssh = find_program("ssh", variable_of(environment, "PATH"));
    if (!ssh) return not_found("there is no 'ssh' on this machine: install an OpenSSH client");
    std::vector<std::string> command = ssh_command(host, options, true);
    command.front() = *ssh;
    command.emplace_back("cat");
    AgentConnection login = TRY(AgentConnection::open(host.name, command, environment));
    TRY(wait_for_echo(login, host));
    return login;
  };
  auto login = begun();
  if (!login) {
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
    return login.error();
  }
  std::vector<std::string> command = ssh_command(host, options, false);
  command.insert(command.begin() + 1, {"-W", fmt::format("127.0.0.1:{}", port)});
  return std::unique_ptr<SshTunnel>(new SshTunnel(folder, *std::move(login), std::move(command)));
}

}  // namespace pscloud

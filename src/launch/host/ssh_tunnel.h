#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "launch/host/ssh_connection.h"
#include "launch/host/ssh_logins.h"

namespace pscloud {

// A way to a port of another machine that answers on its loopback only. There is one login, which the connections
// share; it ends with this, also if this process is killed. One thread.
class SshTunnel {
 public:
  // Logs in. kUnavailable says why it could not.
  static Result<std::unique_ptr<SshTunnel>> open(const Host& host, SshOptions options, uint16_t port);
  SshTunnel(const SshTunnel&) = delete;
  SshTunnel& operator=(const SshTunnel&) = delete;
  ~SshTunnel();

  // Brings a connection there, until its other end closes it.
  Result<> carry(const Fd& connection) { return logins_.carry(connection); }

 private:
  SshTunnel(std::string folder, AgentConnection login, std::vector<std::string> command);

  const std::string folder_;  // of the socket by which logins are shared
  AgentConnection login_;
  SshLogins logins_;
};

}  // namespace pscloud

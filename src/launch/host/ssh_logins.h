#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/fd.h"
#include "pscloud/error.h"

namespace pscloud {

// Connections that are carried to another machine, each by an ssh of its own, which dies with the thread that has
// started it. One thread.
class SshLogins {
 public:
  // The command line of ssh, which passes on what it reads.
  explicit SshLogins(std::vector<std::string> command);
  SshLogins(const SshLogins&) = delete;
  SshLogins& operator=(const SshLogins&) = delete;
  ~SshLogins();  // ends those that still run

  // Until the other end of `connection` closes it.
  Result<> carry(const Fd& connection);

 private:
  const std::vector<std::string> arguments_;
  std::vector<pid_t> running_;
};

}  // namespace pscloud

#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "pscloud/error.h"

namespace pscloud {

// A process that is ours alone: it ends when its object does, and the kernel ends it if this process dies first,
// however that may happen. It has a process group of its own, so that Ctrl-C reaches this process only, which then
// decides. Start it from a thread that lives as long as the process: the kernel takes the end of that thread for ours.
class ChildProcess {
 public:
  // Runs `program`, or if that is empty the one that runs now, with `arguments`. It inherits stderr and the environment
  // without PSCLOUD_* and DMLC_*, plus `environment` ("NAME=value"). `socket` becomes both its stdin and its stdout.
  static Result<ChildProcess> start(const std::vector<std::string>& arguments,
                                    const std::vector<std::string>& environment, Fd socket,
                                    const std::string& program = {});

  ChildProcess(ChildProcess&& other) noexcept : pid_(std::exchange(other.pid_, -1)) {}
  ChildProcess& operator=(ChildProcess&&) = delete;
  ~ChildProcess();

  // Waits for its end. kFailed unless that comes in time, with exit code 0.
  Result<> wait(std::chrono::milliseconds timeout);
  // By itself or not; wait() tells how. From any thread, but not beside wait().
  bool has_ended() const;

  pid_t pid() const { return pid_; }

  // What it has cost so far, while it runs: CPU time of all its threads, and memory that is really there. NaN if the
  // system does not tell.
  double cpu_s() const { return cpu_s_of(pid_); }
  // Without its program and without what it shares with others.
  double own_bytes() const { return own_bytes_of(pid_); }

  // The same for any process, 0 for this one.
  static double cpu_s_of(pid_t pid);
  static double resident_bytes_of(pid_t pid);
  static double own_bytes_of(pid_t pid);

 private:
  explicit ChildProcess(pid_t pid) : pid_(pid) {}

  pid_t pid_;  // -1 once it was waited for
};

}  // namespace pscloud

#pragma once

#include <sys/types.h>

#include <chrono>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "launch/agent/socket_bytes.h"
#include "launch/backend.h"

namespace pscloud {

// A task whose program runs: a child of this process and the leader of a session.
struct SampledTask {
  pid_t program = 0;
  std::chrono::steady_clock::time_point started;
  std::string mark;  // "NAME=value" in the environment of its processes
};

// What the processes of tasks use, of whatever framework, by one look at /proc for all of them. One thread.
//   cpu_percent     since the last look, or the start; 100 is one core
//   memory_bytes    resident; what processes share counts for each
//   sent_bytes, received_bytes   over TCP (socket_bytes.h); not there if the kernel does not tell
class ProcessSampler {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // In the order of `tasks`.
  std::vector<Figures> look(std::span<const SampledTask> tasks, Time now);

 private:
  struct Last {
    double cpu_s = 0;
    Time at;
    SocketBytes sockets;
  };
  std::map<pid_t, Last> last_;  // by program
};

}  // namespace pscloud

#pragma once

#include <map>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "launch/cluster_file.h"

namespace pscloud {

// Hears that EC2 takes machines of a swarm away. Where jobs run by agents, those tell of it; a swarm has none, so our
// program is started on each machine by ssh, for this alone (`pscloud task --notice`), and has a thread here. Before it
// tells of one it writes it down where tasks see it (kMachineNotice). A connection that breaks is opened again. One
// thread calls it; the destructor waits for the others.
class SpotNotices {
 public:
  struct Notice {
    std::string host;
    std::string action;  // "terminate"
    int seconds = 0;     // that are left
  };

  explicit SpotNotices(std::string ssh_config) : ssh_config_(std::move(ssh_config)) {}
  ~SpotNotices();
  SpotNotices(const SpotNotices&) = delete;
  SpotNotices& operator=(const SpotNotices&) = delete;

  // From now on, if it is a spot machine.
  void listen(const Host& host);
  // Those that have come since the last time; one for each machine.
  std::vector<Notice> take();

 private:
  void run(const Host& host) EXCLUDES(mutex_);
  // True once there is one, or nobody wants it any more; false if the connection is broken.
  bool hear(const Host& host) EXCLUDES(mutex_);
  bool is_ending() EXCLUDES(mutex_);

  const std::string ssh_config_;
  Mutex mutex_;
  CondVar changed_;
  bool ending_ GUARDED_BY(mutex_) = false;
  std::vector<Notice> notices_ GUARDED_BY(mutex_);
  std::map<std::string, std::jthread> threads_;  // by host; last: they use the others
};

}  // namespace pscloud

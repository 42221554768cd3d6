#pragma once

#include <thread>

#include "base/mutex.h"
#include "launch/cluster_file.h"
#include "launch/run_folder.h"

namespace pscloud {

// The option of a cluster that says after how many seconds without a word its hosts end themselves; 0: they do not.
inline constexpr const char* kIdleOption = "idle";
Result<int> idle_of(const Cluster& cluster);

// Machines of the cloud end themselves when they hear nothing (cloud/user_data.h). An agent is such a word, but a swarm
// has none, and neither has a machine without a task, which may get one later. So while a job runs this says one to
// each machine of its cluster, and to that of a controller, four times in the time they would wait, from a thread of
// its own as long as it lives; a machine that does not answer holds its end up for a moment only.
class MachineKeeper {
 public:
  // Its cluster.json is read each time: machines that came later are in it. Nothing is done for other clusters. Borrows
  // the folder.
  explicit MachineKeeper(const RunFolder& run);
  ~MachineKeeper();
  MachineKeeper(const MachineKeeper&) = delete;
  MachineKeeper& operator=(const MachineKeeper&) = delete;

 private:
  void work(const std::stop_token& stop, int idle_s) EXCLUDES(mutex_);

  const RunFolder& run_;
  Mutex mutex_;
  CondVar changed_;
  bool ending_ GUARDED_BY(mutex_) = false;
  std::jthread thread_;  // last: it uses the others
};

}  // namespace pscloud

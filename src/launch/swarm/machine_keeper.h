#pragma once

#include <thread>

#include "base/mutex.h"
#include "launch/swarm/swarm_machines.h"

namespace pscloud {

// Machines of the cloud end themselves when they hear nothing (cloud/user_data.h). Where jobs run by agents, those are
// such a word; a swarm has none, so this says one to each machine, four times in the time they would wait, from a
// thread of its own as long as it lives.
class MachineKeeper {
 public:
  explicit MachineKeeper(SwarmMachines machines);
  ~MachineKeeper();
  // One that came later.
  void add(const Host& machine) EXCLUDES(mutex_);
  MachineKeeper(const MachineKeeper&) = delete;
  MachineKeeper& operator=(const MachineKeeper&) = delete;

 private:
  void run() EXCLUDES(mutex_);

  Mutex mutex_;
  SwarmMachines machines_ GUARDED_BY(mutex_);
  CondVar changed_;
  bool ending_ GUARDED_BY(mutex_) = false;
  std::jthread thread_;  // last: it uses the others
};

}  // namespace pscloud

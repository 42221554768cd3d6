#include "launch/swarm/machine_keeper.h"

#include <algorithm>
#include <chrono>

#include "base/log.h"
#include "launch/cloud/machine_wait.h"

namespace pscloud {

MachineKeeper::MachineKeeper(SwarmMachines machines) : machines_(std::move(machines)), thread_([this] { run(); }) {}

MachineKeeper::~MachineKeeper() {
  MutexLock lock(mutex_);
  ending_ = true;
  changed_.notify_all();
}

void MachineKeeper::run() {
  const std::chrono::seconds pause(std::max(machines_.idle_s / 4, 1));
  while (true) {
    for (const std::string& line : keep_machines(machines_.hosts, machines_.ssh_config)) {
      log_debug("no word to {}", line);  // whether a machine is lost is for the swarm to say
    }
    MutexLock lock(mutex_);
    if (changed_.wait_for(mutex_, pause, [&]() REQUIRES(mutex_) { return ending_; })) return;
  }
}

}  // namespace pscloud

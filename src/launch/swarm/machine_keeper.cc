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

void MachineKeeper::add(const Host& machine) {
  MutexLock lock(mutex_);
  machines_.hosts.push_back(machine);
}

void MachineKeeper::run() {
  while (true) {
    SwarmMachines machines;
    {
      MutexLock lock(mutex_);
      machines = machines_;
    }
    for (const std::string& line : keep_machines(machines.hosts, machines.ssh_config)) {
      log_debug("no word to {}", line);  // whether a machine is lost is for the swarm to say
    }
    const std::chrono::seconds pause(std::max(machines.idle_s / 4, 1));
    MutexLock lock(mutex_);
    if (changed_.wait_for(mutex_, pause, [&]() REQUIRES(mutex_) { return ending_; })) return;
  }
}

}  // namespace pscloud

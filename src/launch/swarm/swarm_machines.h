#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "launch/cluster_file.h"
#include "launch/swarm/docker_engine.h"

namespace pscloud {

// The nodes of a swarm that we reach by ssh ourselves, each by its name: the hosts of a cluster file whose option
// "manager" names one of them. `pscloud cluster up --swarm` writes such a file.
struct SwarmMachines {
  std::vector<Host> hosts;  // none: only the engine of a manager is known
  std::string manager;      // the name of one
  std::string ssh_config;   // a file for ssh -F

  bool known() const { return !hosts.empty(); }
  // nullptr if there is none of that name.
  const Host* find(std::string_view name) const;
};

// The node of the machine of that name has this label.
inline constexpr const char* kSwarmMachineLabel = "pscloud.machine";
// And this one: "server", "worker" or "node".
inline constexpr const char* kSwarmRoleLabel = "pscloud.role";

Result<SwarmMachines> read_swarm_machines(const Cluster& cluster);

// By ssh, with the key, the user and the known host keys that the cluster has for the machine.
EngineAddress engine_of_machine(const Host& machine, const std::string& ssh_config);

// Calls `act` with the engine of each machine, several at the same time, each in a thread of its own. The error of the
// first machine that has one, with its name.
Result<> on_each_engine(const std::vector<Host>& machines, const std::string& ssh_config,
                        const std::function<Result<>(const Host& machine, DockerEngine& engine)>& act,
                        const std::function<bool()>& cancelled = {});

// The command line that opens a shell in a container on a machine; on the machine itself if the image has no shell.
// kCorrupt if `container` is no id.
Result<std::vector<std::string>> machine_shell(const Host& machine, const std::string& ssh_config,
                                               const std::string& container);

}  // namespace pscloud

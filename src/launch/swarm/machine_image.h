#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "launch/plan.h"
#include "launch/swarm/swarm_machines.h"

namespace pscloud {

// Our own image on machines that we reach: it is brought there when a job wants it, once for each build, as the program
// itself is to hosts of ssh (docs/launch-agent.md).

// "pscloud:" and 32 digits of a hash, another for each build.
Result<std::string> own_image_name();
bool is_own_image(std::string_view name);

// In a job for a swarm whose machines we reach, roles without an image whose commands are all ours get this one.
Result<> use_own_image(const Cluster& cluster, Job& job);

// Gives it by that name to those machines that have none of that name. What their engines call it: an id says what it
// is, so that no node asks a registry whether there is a newer one.
Result<std::string> load_own_image(const std::vector<Host>& machines, const std::string& ssh_config,
                                   const std::string& name);

}  // namespace pscloud

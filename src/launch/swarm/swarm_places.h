#pragma once

#include <map>
#include <string>

#include "launch/swarm/docker_engine.h"
#include "launch/swarm/swarm_spec.h"

namespace pscloud {

// Where each task of a plan shall be, by its name. On an overlay network (its id is `network`) each has a name of its
// own and all the same port, and the swarm finds nodes. On the nodes' own each has a node, chosen here since its
// address must be known: that of the plan if we know the machines, else in turn; and a port that no other job of ours
// has or gets, for which a config is made. kUnavailable names a machine that is not ready in the swarm.
Result<std::map<std::string, SwarmPlace>> find_places(DockerEngine& engine, const Plan& plan,
                                                      const SwarmOptions& options, const std::string& network);

// As who has made the cluster calls it, if we know that; else its host name.
std::string name_of_node(const JsonValue& node);

}  // namespace pscloud

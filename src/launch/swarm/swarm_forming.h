#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "launch/cloud/patience.h"
#include "launch/swarm/docker_engine.h"
#include "launch/task.h"

namespace pscloud {

// A swarm made of engines that are in none. All of it may be done again: who is in already stays as it is.

// The engine becomes the manager of a new swarm, whose nodes reach it at `address`.
struct FoundedSwarm {
  std::string node;   // the manager's own
  std::string token;  // by which others join: a secret
};
Result<FoundedSwarm> found_swarm(DockerEngine& engine, const std::string& address, Patience& patience);

// The engine, which the others reach at `address`, joins the swarm of the manager at another. The id of its node.
Result<std::string> join_swarm(DockerEngine& engine, const std::string& address, const std::string& manager,
                               const std::string& token, Patience& patience);

// Waits until the manager finds each of these nodes ready, and gives it its labels. kTimeout says how many are missing,
// and why.
using NodeReady = std::function<void(const std::string& node)>;
Result<> label_nodes(DockerEngine& manager, std::map<std::string, Variables> labels, const NodeReady& ready,
                     Patience& patience);

}  // namespace pscloud

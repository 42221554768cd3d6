#pragma once

#include <chrono>
#include <functional>
#include <string_view>

#include "launch/cloud/cloud_folder.h"

namespace pscloud {

struct CloudSwarmOptions {
  std::function<void(std::string_view)> say = [](std::string_view) {};
  std::function<bool()> cancelled = {};
  std::chrono::steady_clock::time_point deadline;
};

// Makes a Docker Swarm of the machines of a cluster that take tasks, whose engines answer: the first is its manager,
// the others join. Each node has the name and the role of its machine as labels. Returns when all nodes are ready. The
// token by which nodes join goes from engine to engine within ssh, and stands nowhere. Errors end with the log of the
// machine.
Result<> make_cloud_swarm(const RunFolder& folder, const CloudState& state, const CloudSwarmOptions& options);

// Lets one machine more, which is in no swarm yet, join that of the cluster.
Result<> join_cloud_swarm(const RunFolder& folder, const CloudState& state, const CloudMachine& machine,
                          const CloudSwarmOptions& options);

}  // namespace pscloud

#pragma once

#include <string>
#include <vector>

#include "launch/cluster_file.h"

namespace pscloud {

// Takes down the machines of a cluster that was made for one run, when that run has ended: a controller calls this,
// whatever has happened to its launcher. The lines that come back name what is left. A cluster that its user brought
// along has none that would be ours to end; those that are made in a cloud come here.
std::vector<std::string> take_down_cluster(const Cluster& cluster);

}  // namespace pscloud

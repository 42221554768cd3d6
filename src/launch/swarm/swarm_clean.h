#pragma once

#include <string>
#include <vector>

#include "launch/ledger.h"
#include "launch/plan.h"

namespace pscloud {

inline constexpr const char* kSwarmEntry = "swarm";  // the ledger's word: {"host": of the engine, "job"}

// Removes all that a job has in swarms, found by its label, waits until its containers have ended, and checks that
// nothing is there. The lines name what is left. Each entry has the engine that it was made by: DOCKER_HOST may say
// something else by now.
Result<std::vector<std::string>> clean_swarm(const Plan& plan, Ledger& ledger);

}  // namespace pscloud

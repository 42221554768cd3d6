#pragma once

#include <functional>
#include <string>
#include <vector>

#include "launch/ledger.h"
#include "launch/plan.h"
#include "launch/swarm/docker_engine.h"

namespace pscloud {

inline constexpr const char* kSwarmEntry = "swarm";  // the ledger's word: {"host": of the engine, "job"}

// Removes all that a job has in swarms, found by its label, waits until its containers have ended, and checks that
// nothing is there. The lines name what is left. Each entry has the engine that it was made by: DOCKER_HOST may say
// something else by now. `find` knows how it is reached.
using FindEngine = std::function<Result<EngineAddress>(const std::string& host)>;
Result<std::vector<std::string>> clean_swarm(const Plan& plan, Ledger& ledger, const FindEngine& find);

}  // namespace pscloud

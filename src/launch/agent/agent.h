#pragma once

#include <vector>

#include "launch/agent/agent_link.h"
#include "launch/task.h"

namespace pscloud {

// Runs tasks on this machine for a launcher somewhere: `pscloud task`. Each gets a port of its own, tells its address,
// and its program begins when the launcher says who else is where; what it writes goes to the launcher line by line.
// The agent outlives its launcher, so that nothing else does: when the link says kGone, or on SIGTERM, it ends all
// programs (SIGTERM, grace, SIGKILL) with whatever they have started, removes the tasks' private folders, and ends.
//
// Begins with `tasks` and ends with the last of them; with none it ends when the launcher goes. Returns the largest of
// the tasks' exit codes. Must be called by the main thread of a process that has no other use: it takes in the orphans
// of its programs and waits for all children.
int run_agent(AgentLink& link, std::vector<TaskSpec> tasks);

}  // namespace pscloud

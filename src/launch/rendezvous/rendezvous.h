#pragma once

#include <string>
#include <vector>

#include "launch/plan.h"
#include "launch/rendezvous/folder_link.h"

namespace pscloud {

// A job without a launcher: something else, such as a submit file of the user's own, starts the same program once for
// each task, and they find each other in a folder that all see. One task leads: it tells all who is where when enough
// are there, and ends the job. The rules are the launcher's (supervisor.h); each makes the same plan of the same flags.
struct RendezvousOptions {
  std::string shared;  // the job's folder is made below it
  TaskId task;         // who this is
  FolderTimes times;
};

// Who leads: the chief, or else the first scheduler, server or worker.
TaskId rendezvous_leader(const Plan& plan);

// Runs the task to its end: the exit code of its program if that has ended by itself; of one that was ended 0 if the
// job is done, 3 if tasks were missing, else 1. Lines for people go to stderr. Called by the main thread, before there
// is any other.
int run_rendezvous(const Plan& plan, const RendezvousOptions& options);

}  // namespace pscloud

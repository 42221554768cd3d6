#pragma once

#include <memory>
#include <string>

#include "launch/queue/backend_queue.h"
#include "launch/queue/slurm_job.h"

namespace pscloud {

inline constexpr BackendOption kSlurmOptions[] = {
    {"partition", "as of sbatch"},
    {"account", "as of sbatch"},
    {"qos", "as of sbatch"},
    {"constraint", "as of sbatch"},
    {"reservation", "as of sbatch"},
    {"time", "as of sbatch: minutes, or days-hours:minutes:seconds"},
    {"shape", "one: all tasks get the most that any asks for, and may share machines; roles: each role gets its own"},
    {"folder", "on a disk that the login node and the machines share (default: the run's own folder)"},
    {"program", "where pscloud is on the machines (default: it is copied to that folder)"},
    {"lost_after", "seconds without a sign of life after which launcher or task count as gone (default: 90)"},
};

// Makes one job of a plan, by sbatch on this machine: a plain one if all tasks ask for the same, else a heterogeneous
// one. The agents meet the launcher in a folder (folder_watch.h), and find the program there.
Result<std::unique_ptr<Backend>> make_slurm_backend(const Cluster& cluster, const std::string& run_folder);

}  // namespace pscloud

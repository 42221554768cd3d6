#pragma once

#include <memory>
#include <string>

#include "launch/queue/backend_queue.h"

namespace pscloud {

inline constexpr BackendOption kCondorOptions[] = {
    {"folder", "on a disk that this machine and the pool share, to meet in (default: tasks connect to the launcher)"},
    {"address", "host, address or interface at which the tasks reach the launcher (default: found out)"},
    {"port", "at which they do (default: any that is free)"},
    {"program", "where pscloud is on the machines (default: it is copied there)"},
    {"requirements", "as of condor_submit"},
    {"group", "accounting_group of condor_submit"},
    {"lost_after", "seconds without a sign of life after which launcher or task count as gone (default: 90)"},
};

// Makes one submission of a plan, by condor_submit on this machine: vanilla universe, or docker for tasks that have an
// image. The agents meet the launcher in a folder (folder_watch.h) or connect to it (socket_watch.h).
Result<std::unique_ptr<Backend>> make_condor_backend(const Cluster& cluster, const std::string& run_folder);

}  // namespace pscloud

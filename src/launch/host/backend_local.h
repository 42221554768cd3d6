#pragma once

#include <memory>
#include <string>

#include "launch/backend.h"

namespace pscloud {

// This machine: one agent, which ends all tasks when this process is gone, however that may happen.
Result<std::unique_ptr<Backend>> make_local_backend(const Cluster& cluster, const std::string& run_folder);

}  // namespace pscloud

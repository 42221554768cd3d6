#pragma once

#include <string>

#include "cli/cloud/controller_client.h"

namespace pscloud {

// `pscloud status`, `logs`, `stop` and `down` of runs that a controller looks after. Exit codes.
int remote_status(const ControllerFlags& flags, const std::string& run, bool all, bool json);
int remote_logs(const ControllerFlags& flags, const std::string& run, const std::string& task, bool follow);
int remote_stop(const ControllerFlags& flags, const std::string& run, bool at_once, int timeout_s, bool json);
int remote_down(const ControllerFlags& flags, bool all, int timeout_s, bool json);

}  // namespace pscloud

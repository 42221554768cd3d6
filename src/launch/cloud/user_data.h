#pragma once

#include <string>
#include <string_view>

#include "launch/agent/keep_alive.h"
#include "launch/cloud/cloud_plan.h"

namespace pscloud {

// The script that each machine of this role runs at its first boot, as root: starts the watch that ends the machine
// when nobody looks after it, installs what was asked for, and says how that went. It holds no secret: whoever is on
// the machine can read it. `login` is a line of authorized_keys, beside the key that EC2 gives the machine; empty:
// none. kInvalid if it is longer than EC2 takes.
Result<std::string> user_data(const CloudPlan& plan, std::string_view role, const std::string& login = {});

// On the machines. `state` begins with "ready" when the script has ended well, with "failed" when not.
inline constexpr const char* kMachineState = "/var/lib/pscloud/state";
// A machine ends itself unless somebody changes the time of this file, and at once if it has the word "end".
inline constexpr const char* kMachineKeepAlive = KeepAlive::kFile;
// Where tasks on a machine may keep what the next run can use, such as caches of parsed data: the login's own.
inline constexpr const char* kMachineCache = "/var/lib/pscloud/cache";
// There too, for containers see it: what EC2 says when it takes the machine away.
inline constexpr const char* kMachineNotice = "/var/lib/pscloud/cache/.notice";
inline constexpr const char* kMachineLog = "/var/log/cloud-init-output.log";

}  // namespace pscloud

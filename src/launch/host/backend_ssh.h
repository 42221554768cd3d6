#pragma once

#include <array>
#include <memory>
#include <string>

#include "launch/backend.h"

namespace pscloud {

inline constexpr std::array kSshOptions = {
    BackendOption{"accept_new_host_keys", "yes: take the keys of hosts that were never seen"},
    BackendOption{"ssh_config", "a file for ssh -F"},
    BackendOption{"lost_after", "seconds of silence after which a host, or the launcher, is gone [30]"},
    BackendOption{"idle", "seconds after which the hosts end themselves unless they hear a word [they do not]"},
    BackendOption{"folder", "to work in on the hosts [the one of this name there, else the home]"},
};

// Machines of one's own that are reached by ssh: an agent on each, over one connection.
Result<std::unique_ptr<Backend>> make_ssh_backend(const Cluster& cluster, const std::string& run_folder);

}  // namespace pscloud

#pragma once

#include <string>
#include <string_view>

#include "pscloud/error.h"

namespace pscloud {

// The header X-Registry-Auth by which an engine, or the nodes of its swarm, log in to a registry
// ("registry.example:5000"; empty: Docker Hub): as `docker login` has left it in config.json, in $DOCKER_CONFIG or
// ~/.docker. That of nobody if it has not. Logins that a helper program keeps are not looked up.
Result<std::string> registry_auth(std::string_view registry);

}  // namespace pscloud

#pragma once

#include <functional>
#include <optional>
#include <string>

#include "pscloud/node.h"

namespace pscloud {

// Looks a name up in an environment; std::nullopt if it is not set.
using Environment = std::function<std::optional<std::string>(const char* name)>;

// That of this process.
Environment process_environment();

// Fills `options` from PSCLOUD_* and, where these are absent, from ps-lite's DMLC_* names.
// docs/node-environment.md lists them. kInvalid names the variable that has no sense.
Result<> apply_environment(const Environment& environment, NodeOptions& options);

}  // namespace pscloud

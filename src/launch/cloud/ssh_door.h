#pragma once

#include <string>

#include "io/aws_credentials.h"
#include "pscloud/error.h"

namespace pscloud {

// Lets ssh in to the machines of a cluster from another block of addresses, and no longer from that of before: for who
// comes back at another address. `wanted` is empty for that of this machine. The block that it is now.
Result<std::string> move_ssh_door(const std::string& cluster, const std::string& wanted,
                                  const AwsVariables& environment = process_aws_variables());

}  // namespace pscloud

#pragma once

#include <string>

#include "launch/cloud/aws_api.h"
#include "launch/cloud/cloud_plan.h"

namespace pscloud {

// Asks the account for all that a plan needs, and makes nothing: network and free addresses, zones that have the types,
// image, prices, limits, and the address that this machine is seen at. `id` becomes the plan's. Errors say what to do.
Result<CloudPlan> survey_cloud(AwsApi& api, const CloudRequest& request, const std::string& id);

// A block of the plan's network that is free now, for the subnet that it makes.
Result<std::string> free_subnet(AwsApi& api, const CloudPlan& plan);

// The block that ssh shall come from: `wanted`, or if that is empty the address that this machine is seen at.
Result<std::string> find_ssh_from(const std::string& wanted, const CloudPlan& plan);

// The user that images of this name log in; empty if it is not known.
std::string login_user(const std::string& image_name);

// Sixteen hexadecimal digits, by chance.
std::string new_cloud_id();

}  // namespace pscloud

#pragma once

#include <cstdint>
#include <string>

#include "io/aws_signature.h"
#include "launch/cloud/aws_api.h"
#include "launch/cloud/cloud_plan.h"

namespace pscloud {

// What lent keys allow: to look, to remove what bears this cluster's id, and to write below `logs_to`; and, if workers
// are on spot machines, to make such machines: with the cluster's id, in its network, of their type, image and role.
std::string lent_policy(const CloudPlan& plan, const std::string& logs_to);
// Keys for this and for nothing else, good a while longer than its machines may live, though for 36 hours at most: AWS
// lends none for longer.
Result<AwsCredentials> lend_keys(AwsApi& api, const CloudPlan& plan, const std::string& logs_to, int64_t now_unix);

}  // namespace pscloud

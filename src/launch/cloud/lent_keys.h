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
// AWS lends none for longer, in seconds.
inline constexpr int64_t kLentAtMost = 36 * 3600;
// Keys for this and for nothing else, good a while longer than its machines may live if AWS lends them so long.
// kInvalid if they would not be good as long as those: nobody would be there to take down what a long run has left.
Result<AwsCredentials> lend_keys(AwsApi& api, const CloudPlan& plan, const std::string& logs_to, int64_t now_unix);

}  // namespace pscloud

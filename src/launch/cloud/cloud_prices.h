#pragma once

#include <string>
#include <vector>

#include "launch/cloud/aws_api.h"
#include "launch/cloud/cloud_plan.h"

namespace pscloud {

// What a machine of this type costs now: spot from the history of prices in the zone, on demand from AWS's list. What
// cannot be found out is unknown, and says why; it is never an error.
CloudPrice ask_price(AwsApi& api, const std::string& type, bool spot, const std::string& zone);
// Of an answer of the price list. kNotFound if it has none.
Result<double> on_demand_price(const JsonValue& answer);

// The family whose limit a type counts for, "standard", "g", "p"; empty if it is not known here.
std::string quota_family(const std::string& type);
// How many virtual processors of each family the groups want, may have and use.
std::vector<CloudQuota> ask_quotas(AwsApi& api, const std::vector<CloudPlan::Group>& groups);

}  // namespace pscloud

#pragma once

#include <string>

#include "launch/cloud/aws_api.h"
#include "launch/cloud/cloud_plan.h"
#include "launch/ledger.h"

namespace pscloud {

// What a call for machines needs beside the plan.
struct MachineOrder {
  std::string subnet;
  std::string security_group;
  std::string user_data;
  std::string token;  // however often the call is repeated, there is one group of machines for it
};

struct MachineAnswer {
  std::string instance;      // the first
  bool no_capacity = false;  // EC2 has none to give there now: another zone, or a later moment, may have
  Error error = {};          // if there is no instance: why, for people
};

// Asks for machines that are alike, all of them or none; they stand in the ledger before. An error of the Result is
// one of the network or the disk, after which nobody knows whether they were made.
Result<MachineAnswer> order_machines(AwsApi& api, Ledger& ledger, const CloudPlan& plan, const MachineGroup& group,
                                     const MachineOrder& order);

// Whether EC2 refuses a call because it does not know a thing of this cluster that was made for it. That passes: what
// it has just made it may not know for a moment.
bool says_unknown_thing(const CloudPlan& plan, const std::string& code);

// By which EC2 says that it has none to give: code of a refusal, or the reason why a machine ended before it ran.
bool says_no_capacity(const std::string& text);

}  // namespace pscloud

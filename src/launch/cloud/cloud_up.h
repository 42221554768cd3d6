#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>

#include "io/aws_credentials.h"
#include "launch/cloud/cloud_folder.h"

namespace pscloud {

struct BringUpOptions {
  std::function<void(std::string_view)> say = [](std::string_view) {};  // progress, a line each
  std::function<bool()> cancelled = {};
  std::chrono::seconds timeout{900};  // for machines to run, and then to get ready
  std::chrono::seconds settle{10};    // as in TakeDownOptions
  AwsVariables environment = process_aws_variables();
};

// Makes what the plan says, waits until every machine is ready, and writes the cluster's folder, cluster.json last:
// `--on NAME` then runs there. Each thing stands in the ledger before its call is made and bears the plan's id as a tag
// from its first moment. If anything fails or is cancelled all of it is removed again; the error says whether anything
// is left.
Result<CloudState> bring_up(const CloudPlan& plan, const BringUpOptions& options);

}  // namespace pscloud

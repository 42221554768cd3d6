#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "io/aws_credentials.h"
#include "launch/cluster_file.h"
#include "launch/machine_supply.h"

namespace pscloud {

struct ReplaceOptions {
  std::function<void(std::string_view)> say = [](std::string_view) {};  // progress, a line each
  std::function<bool()> cancelled = {};
  std::chrono::seconds timeout{600};                // for all of it
  std::chrono::milliseconds ask_again_after{5000};  // what EC2 does not give now
  AwsVariables environment = process_aws_variables();
};

// Makes a machine in the place of one of a cluster that EC2 takes away: of the same role, type, image, network and
// tags, and waits until it is ready. It then stands in the cluster's folder instead of the other, for later jobs too.
// It is in the ledger before it is asked for. Runs that ask for the same at the same time get the same machine. While
// EC2 has no spot machine to give, throttles, fails or is not reached it asks again; on demand only if the plan says
// so. If it does not get ready, or this is cancelled, it is ended again, also one whose making EC2 has not told of. The
// cluster is locked only for moments: it may be taken down meanwhile.
Result<Host> replace_machine(const std::string& cluster, const std::string& lost, const ReplaceOptions& options);

// The same for a job that runs. `environment` has the keys.
std::unique_ptr<MachineSupply> make_cloud_supply(std::string cluster, AwsVariables environment);

}  // namespace pscloud

#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "launch/cloud/aws_api.h"

namespace pscloud {

// A machine as EC2 has it.
struct Ec2Instance {
  std::string id;
  std::string state;  // "pending", "running", "shutting-down", "terminated", ...
  std::string reason;
  std::string role;
  std::string private_address;
  std::string public_address;
  int launch_index = 0;  // within the call that made it
  bool spot = false;
};
// All of a cluster that EC2 still tells of, by role, launch index and id.
Result<std::vector<Ec2Instance>> list_instances(AwsApi& api, const std::string& cloud_id);

// The kinds of things that a cluster is made of, in the order in which they can be removed.
std::vector<std::string> cloud_kinds();
// Of such a kind, the ids of what is there and is the cluster's.
Result<std::vector<std::string>> list_things(AwsApi& api, const std::string& kind, const std::string& cloud_id);

struct SweepOptions {
  std::function<void(std::string_view)> say = [](std::string_view) {};
  std::function<bool()> cancelled = {};
  std::chrono::steady_clock::time_point deadline;
};

// Removes all things of that kind that are the cluster's, and looks until there is none; not before `quiet_until`,
// because what was begun and cut off may appear late. kTimeout says what is left.
Result<> sweep_things(AwsApi& api, const std::string& kind, const std::string& cloud_id,
                      std::chrono::steady_clock::time_point quiet_until, const SweepOptions& options);

}  // namespace pscloud

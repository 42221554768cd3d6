#pragma once

#include <chrono>
#include <functional>
#include <map>
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
  std::string interface;  // its first, "eni-..."
  std::string token;      // of the call that made it
  int launch_index = 0;   // within that call
  bool spot = false;
};
// All of a cluster that EC2 still tells of, by role, launch index and id.
Result<std::vector<Ec2Instance>> list_instances(AwsApi& api, const std::string& cloud_id);

// The kinds of things that a cluster is made of, in the order in which they can be removed.
std::vector<std::string> cloud_kinds();
// Of such a kind, the ids of what is there and is the cluster's.
Result<std::vector<std::string>> list_things(AwsApi& api, const std::string& kind, const std::string& cloud_id);

// Something of a cluster, of whomever, in the account.
struct TaggedThing {
  std::string kind;
  std::string cloud_id;
  std::string cluster;
  std::string owner;
};
Result<std::vector<TaggedThing>> list_account(AwsApi& api);

struct SweepOptions {
  std::function<void(std::string_view)> say = [](std::string_view) {};
  std::function<bool()> cancelled = {};
  std::chrono::seconds timeout{};                          // of each kind: what takes long leaves the others their time
  std::string spared = {};                                 // a machine that stays
  std::chrono::steady_clock::time_point quiet_until = {};  // of sweep_kinds
  // Ids, by kind, of what was surely made: they are removed though EC2 lists them not (yet).
  std::map<std::string, std::vector<std::string>> known = {};
};

// Removes all things of that kind that are the cluster's, and looks until there is none; not before `quiet_until`,
// because what was just made, or begun and cut off, may appear late. What is known and not listed counts as gone when
// EC2 is asked to remove it after that, and does, or does not know it. What EC2 refuses for a while, or does not
// answer, is tried again until the time is over. kTimeout says what is left; kUnavailable the same if EC2 was the
// reason.
Result<> sweep_things(AwsApi& api, const std::string& kind, const std::string& cloud_id,
                      std::chrono::steady_clock::time_point quiet_until, const SweepOptions& options);
// The same for several kinds, one after the other, whatever becomes of each. The lines name what is left, and why.
// After one that EC2 did not let go, the others get a little time only: it is not there for hours.
std::vector<std::string> sweep_kinds(AwsApi& api, const std::vector<std::string>& kinds, const std::string& cloud_id,
                                     SweepOptions options);

// What is left of the time for the next kind, after this one.
void hurry_after(const Result<>& swept, SweepOptions& options);

// How long one try of a call may take for who waits so long for what it does.
std::chrono::milliseconds call_timeout(std::chrono::seconds timeout);

}  // namespace pscloud

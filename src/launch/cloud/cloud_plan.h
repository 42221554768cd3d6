#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "launch/task.h"

namespace pscloud {

// What a user asks for.
struct CloudRequest {
  std::string name;
  int nodes = 1;
  int servers = 0;  // machines for servers and the scheduler alone; 0: one if roles differ, else none
  std::string instance;
  std::string servers_instance;  // empty: `instance`
  std::string workers_instance;
  bool spot = false;  // for workers; servers stay on demand: with one the job would end
  std::string max_price;
  std::string zone;
  std::string subnet;  // one that is there; empty: one is made
  std::string image;
  std::string user;      // that images of this kind log in; empty: known from the image's name
  std::string ssh_from;  // a block of addresses; empty: this machine's
  std::string instance_profile;
  std::string setup;                // a script for each machine
  bool controller = false;          // one machine more, on demand, that looks after runs and takes the cluster down
  std::string controller_instance;  // its type; empty: a small one
  std::string controller_profile;   // its role; empty: it is lent keys
  bool private_addresses = false;
  bool placement = false;
  bool docker = false;              // a container engine on each machine
  bool on_demand_fallback = false;  // for a spot machine that is taken away, if there is no other spot machine
  bool swarm = false;               // and a swarm of them
  int idle_s = 3600;
  int life_s = 86400;
};

// Machines that are alike, made by one call: all of them or none.
struct MachineGroup {
  std::string role;  // "server", "worker", or "node" for any; "controller"
  int count = 0;
  std::string type;
  bool spot = false;
};
// kInvalid says what is wrong with the request.
Result<std::vector<MachineGroup>> machine_groups(const CloudRequest& request);
// The role of a machine that takes no tasks.
inline constexpr const char* kControllerRole = "controller";
// Which tasks a machine of this role takes; empty: all.
std::vector<TaskRole> roles_of_machine(std::string_view role);

struct InstanceType {
  std::string name;
  int vcpus = 0;
  int64_t memory_mib = 0;
  int gpus = 0;
  std::vector<std::string> architectures;  // "x86_64", "arm64"
};

// Dollars for an hour of one machine, if that is known, or why it is not.
struct CloudPrice {
  std::optional<double> dollars;
  std::string unknown;
};

// How many virtual processors of some family may run at once, and do.
struct CloudQuota {
  std::string what;  // "on-demand standard"
  int wanted = 0;
  std::optional<double> limit;
  double used = 0;
  std::string unknown;
};

// A disk that an image would leave behind when its machine ends. Ours go with their machine.
struct KeptDisk {
  std::string device;
  int gib = 0;
};

// All that will be made, and what is known of it before.
struct CloudPlan {
  struct Group : MachineGroup {
    InstanceType what = {};
    CloudPrice price = {};
  };
  std::string name;
  std::string id;  // of this one, for good: the tag by which everything is found again
  std::string region;
  std::string endpoint;
  std::string owner;
  std::string zone;
  std::vector<std::string> other_zones;  // that have the types too, if the first has no capacity; the user's is alone
  std::string vpc;
  std::string vpc_cidr;     // empty if the subnet is given
  std::string subnet;       // given by the user; empty: made
  std::string subnet_cidr;  // of one to be made
  std::string image;
  std::string image_name;
  std::vector<KeptDisk> kept_disks;
  std::string user;
  std::string ssh_from;
  std::string instance_profile;
  std::string controller_subnet;  // that is not ours: the controller could not remove the one it is in; empty: none
  std::string controller_profile;
  std::string max_price;
  std::string setup;
  bool private_addresses = false;
  bool placement = false;
  bool docker = false;
  bool on_demand_fallback = false;
  bool swarm = false;
  int idle_s = 0;
  int64_t expires_unix = 0;
  std::vector<Group> groups;
  std::vector<CloudQuota> quotas;

  int machines() const;
  // The name of the first of them, which manages the swarm: on demand if any is.
  std::string manager() const;
  // Of all whose price is known; and whether it is of all.
  std::pair<double, bool> dollars_per_hour() const;
};

// For people: a table of what is made, what it costs, what is checked.
std::string cloud_plan_text(const CloudPlan& plan);
// For programs and for the cluster's folder; without the set-up script.
std::string cloud_plan_json(const CloudPlan& plan);
Result<CloudPlan> parse_cloud_plan(const JsonValue& value);

// kInvalid if the account may not run so many.
Result<> check_quotas(const CloudPlan& plan);

// The tags of everything that is made: the cluster, its id, owner and end, the task's name and the role.
std::vector<std::pair<std::string, std::string>> cloud_tags(const CloudPlan& plan, std::string_view role);
inline constexpr const char* kIdTag = "pscloud:id";
inline constexpr const char* kClusterTag = "pscloud:cluster";
inline constexpr const char* kRoleTag = "pscloud:role";
inline constexpr const char* kOwnerTag = "pscloud:owner";
inline constexpr const char* kExpiresTag = "pscloud:expires";

// What the things of a cluster are called: "pscloud-clicks-0123456789abcdef".
std::string cloud_name(const CloudPlan& plan);

// "90s", "30m", "12h", "2d"; in seconds. kInvalid if it is none.
Result<int> parse_duration(std::string_view text);
std::string duration_text(int64_t seconds);

}  // namespace pscloud

#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "launch/task.h"

namespace pscloud {

// 0: whatever there is.
struct Resources {
  int cpus = 0;
  uint64_t memory_bytes = 0;
  int gpus = 0;
};

class JsonValue;
// {"cpus": 4, "memory": "8G", "gpus": 1} of a user's file.
Result<Resources> parse_resources(const JsonValue& value, std::string_view file);

// A machine that is reached by ssh. One that stands in the file for several roles is here several times, by one name.
struct Host {
  std::string name;             // in messages; the address if the file has none
  std::string address;          // for ssh and for the other hosts
  std::string user;             // empty: as ssh says
  uint16_t port = 0;            // 0: as ssh says
  std::string identity_file;    // empty: as ssh says
  std::string interface;        // by which the others reach it; empty: `address`
  int slots = 0;                // tasks that fit; 0: any number
  std::vector<TaskRole> roles;  // empty: all
  double cost_usd_per_hour = 0;
  bool cost_unknown = false;  // it costs something, and nobody knows what
  bool spot = false;          // EC2 may take it away, with a notice

  bool is_for(TaskRole role) const { return roles.empty() || std::ranges::find(roles, role) != roles.end(); }
};

// Where a job may run.
struct Cluster {
  std::string target = "local";  // or "ssh", "swarm", "slurm", "condor", "kubernetes", "fake"
  std::vector<Host> hosts;       // of ssh
  std::string virtualenv;        // becomes VIRTUAL_ENV of each task, whose bin the agent puts in front of PATH
  Variables environment;
  std::vector<std::string> files;
  std::string image;
  Variables options;  // of the target, such as {"partition", "gpu"}; each back end checks its own
  std::vector<std::pair<TaskRole, Resources>> resources;
  std::string cloud;             // the name of `pscloud cluster up`, if its machines are made by us
  bool poseidon = false;         // was a file of psd_run
  double cost_usd_per_hour = 0;  // beside what its hosts cost
  bool cost_unknown = false;     // there is more beside them, and nobody knows what it costs
};

// Reads Poseidon's JSON as it is (worker_nodes, server_nodes, master_node, username, pem_file, virtualenv), and ours
// (docs/launch.md), a superset. kInvalid with "file:line:column: ..." and the name that was probably meant.
Result<Cluster> parse_cluster_file(std::string_view text, std::string_view file);

// Such a file again, all that is in it: a run's folder keeps it for whoever cleans up.
std::string cluster_json(const Cluster& cluster);

// What `--on` says: "local", the name of a cluster with options "slurm:partition=gpu,time=60", "ssh:host1,host2", the
// name of a cluster in the cloud that is up (cloud/cloud_folder.h), or a file.
Result<Cluster> find_cluster(const std::string& on);

}  // namespace pscloud

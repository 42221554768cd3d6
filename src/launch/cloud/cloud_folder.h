#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launch/cloud/cloud_plan.h"
#include "launch/cluster_file.h"
#include "launch/run_folder.h"

namespace pscloud {

// Where the clusters of this user are, beside the runs: $PSCLOUD_HOME/clusters. Each has a folder that its user alone
// may read, of the same kind as a run's (run_folder.h): state.json, ledger.jsonl, the key `id` and `id.pub`,
// known_hosts, ssh_config, and cluster.json once it is up. It is removed when nothing is left of the cluster.
Result<std::string> find_clusters_folder();

struct CloudMachine {
  std::string name;  // "worker-0"
  std::string role;
  std::string instance;  // EC2's id
  std::string private_address;
  std::string public_address;
  bool spot = false;
  std::string instead_of = {};                  // the name of one that was taken away
  std::optional<double> dollars_per_hour = {};  // if it is not that of its group: on demand in the place of spot
};

// state.json.
struct CloudState {
  CloudPlan plan;
  std::string step;  // "making", "up", "given" (to its controller, with a run), "ending"
  int64_t made_unix = 0;
  std::vector<CloudMachine> machines;
  bool inside = false;  // this is its controller's own: machines are reached by their private addresses
};
std::string cloud_state_json(const CloudState& state);
Result<CloudState> parse_cloud_state(std::string_view text);

// The set-up script of the plan, for machines that come later; there is none without one.
inline constexpr const char* kSetupFile = "setup";

// A new one, locked by this process, with its key. kInvalid if there is one of that name.
Result<RunFolder> create_cloud_folder(const CloudState& state);
// One that is there; not locked. kNotFound names the nearest.
Result<RunFolder> open_cloud_folder(const std::string& name);
Result<CloudState> read_cloud_state(const RunFolder& folder);
std::vector<std::string> list_clouds();

// "node-0", or psbench's "0.node", among the machines. Where machines are for all roles, "0.worker" is node-0, too.
Result<CloudMachine> find_machine(const CloudState& state, const std::string& name);
// What an hour of it costs, if that was known when it was made.
std::optional<double> price_of_machine(const CloudState& state, const CloudMachine& machine);
// How ssh reaches a machine, and what the other machines call it.
Host host_of_machine(const RunFolder& folder, const CloudState& state, const CloudMachine& machine);
// What `--on NAME` means: all machines that can be reached.
Cluster cluster_of(const RunFolder& folder, const CloudState& state);

// Host keys are kept beside the cluster and go with it: EC2 gives addresses away again, and then to strangers.
std::string ssh_config_of(const std::string& folder);
// EC2 has given an address to another machine than the one whose key is known for it.
Result<> forget_host_key(const RunFolder& folder, const std::string& address);

// The cluster file of a cluster that is up; empty if there is none of that name. kInvalid if it is not up yet.
Result<std::string> find_cloud_cluster_file(const std::string& name);

}  // namespace pscloud

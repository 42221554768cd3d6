#include "launch/cloud/cloud_controller.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "base/clock.h"
#include "launch/cloud/lent_keys.h"
#include "launch/cloud/machine_wait.h"
#include "launch/process/tool.h"

namespace pscloud {
namespace {

constexpr const char* kControllerFile = "controller.json";
constexpr std::chrono::seconds kToAskController{30};
// Where the controller has the cluster's folder (find_clusters_folder); `folder` is its name.
constexpr const char* kGoToFolder =
    "umask 077; folder=${PSCLOUD_HOME:-${XDG_STATE_HOME:-$HOME/.local/state}/pscloud}/clusters/$folder; "
    "mkdir -p \"$folder\" && cd \"$folder\" && ";
// Says where that is, and the public half of its key; the private one is made once and never leaves.
constexpr const char* kMakeKey =
    "{ [ -f id ] || ssh-keygen -q -t ed25519 -N '' -C controller -f id; } && pwd && cat id.pub";
constexpr const char* kTakeKnownHosts = "cat > known_hosts";
constexpr const char* kTakeSshConfig = "cat > ssh_config";
constexpr const char* kTakeKey = "umask 077; mkdir -p .ssh && cat >> .ssh/authorized_keys";

const CloudMachine* find_controller(const CloudState& state) {
  const auto found = std::ranges::find(state.machines, kControllerRole, &CloudMachine::role);
  return found == state.machines.end() ? nullptr : &*found;
}

ControllerWay way_to(const RunFolder& folder, const CloudState& state, const CloudMachine& machine) {
  ControllerWay way{.host = host_of_machine(folder, state, machine), .ssh = {}};
  way.ssh.config_file = folder.path("ssh_config");
  return way;
}

// Within the folder that it has of the cluster.
Result<std::string> ask_controller(const ControllerWay& way, const std::string& cluster, const char* command,
                                   const std::string& input) {
  std::vector<std::string> words = ssh_command(way.host, way.ssh, false);
  words.push_back(fmt::format("folder='{}'; {}{}", cluster, kGoToFolder, command));
  return tool_answer(words, input, kToAskController).at(way.host.name);
}

// The host keys that were taken while the machines came up, by the addresses at which the controller reaches them.
std::string known_inside(const RunFolder& folder, const CloudState& state, const std::string& known_hosts) {
  std::string lines;
  for (const CloudMachine& machine : state.machines) {
    const std::string outside = host_of_machine(folder, state, machine).address + " ";
    for (size_t at = 0; at < known_hosts.size();) {
      const size_t end = std::min(known_hosts.find('\n', at), known_hosts.size());
      const std::string_view line = std::string_view(known_hosts).substr(at, end - at);
      if (line.starts_with(outside)) {
        lines += fmt::format("{} {}\n", machine.private_address, line.substr(outside.size()));
      }
      at = end + 1;
    }
  }
  return lines;
}

Cluster cluster_inside(const RunFolder& folder, const CloudState& state, const std::string& there) {
  Cluster cluster = cluster_of(folder, state);
  cluster.cloud.clear();  // its keys for machines in the place of others come with each run
  for (Host& host : cluster.hosts) {
    host.address = host.interface;
    host.identity_file = there + "/id";
  }
  for (auto& [name, value] : cluster.options) {
    if (name == "ssh_config") value = there + "/ssh_config";
  }
  return cluster;
}

}  // namespace

Result<> introduce_controller(const RunFolder& folder, const CloudState& state) {
  const CloudMachine* machine = find_controller(state);
  if (machine == nullptr) return {};
  const ControllerWay way = way_to(folder, state, *machine);
  const std::string& name = state.plan.name;
  const std::vector<std::string> made = lines_of_tool(TRY(ask_controller(way, name, kMakeKey, "")));
  if (made.size() < 2 || !made[made.size() - 2].starts_with('/') || !made.back().starts_with("ssh-ed25519 ")) {
    return job_failed("{} could not make a key for itself", machine->name);
  }
  const std::string& there = made[made.size() - 2];
  const std::string known = known_inside(folder, state, TRY(folder.read("known_hosts")));
  TRY(ask_controller(way, name, kTakeKnownHosts, known));
  TRY(ask_controller(way, name, kTakeSshConfig, ssh_config_of(there)));
  const Cluster cluster = cluster_inside(folder, state, there);
  std::vector<Host> others;
  for (const CloudMachine& each : state.machines) {
    if (each.role != kControllerRole) others.push_back(host_of_machine(folder, state, each));
  }
  const std::string login = TRY(controller_login(state, made.back()));
  const std::vector<std::string> wrong = tell_machines(others, folder.path("ssh_config"), kTakeKey, login + "\n");
  if (!wrong.empty()) return unavailable("the controller's key could not be given to {}", fmt::join(wrong, "; "));
  return folder.write(kControllerFile, cluster_json(cluster) + "\n");
}

Result<ControllerWay> way_to_controller(const std::string& name) {
  const RunFolder folder = TRY(open_cloud_folder(name));
  const CloudState state = TRY(read_cloud_state(folder));
  const CloudMachine* machine = find_controller(state);
  if (machine == nullptr) return not_found("the cluster '{}' has no controller", name);
  return way_to(folder, state, *machine);
}

Result<std::optional<CloudController>> find_cloud_controller(const std::string& name) {
  const std::string file = TRY(find_cloud_cluster_file(name));
  if (file.empty()) return std::optional<CloudController>();
  RunFolder folder = TRY(open_cloud_folder(name));
  if (::access(folder.path(kControllerFile).c_str(), F_OK) != 0) return std::optional<CloudController>();
  CloudState state = TRY(read_cloud_state(folder));
  const CloudMachine* machine = find_controller(state);
  if (machine == nullptr) return std::optional<CloudController>();
  Cluster cluster = TRY(parse_cluster_file(TRY(folder.read(kControllerFile)), folder.path(kControllerFile)));
  ControllerWay way = way_to(folder, state, *machine);
  return std::optional(CloudController{
      .folder = std::move(folder), .state = std::move(state), .way = std::move(way), .cluster = std::move(cluster)});
}

Result<CloudCharge> charge_controller(const CloudController& controller, const std::string& logs_to) {
  const CloudPlan& plan = controller.state.plan;
  CloudState inside = controller.state;
  inside.inside = true;
  const bool has_setup = ::access(controller.folder.path(kSetupFile).c_str(), F_OK) == 0;
  CloudCharge charge{.cluster = plan.name,
                     .id = plan.id,
                     .region = plan.region,
                     .endpoint = plan.endpoint,
                     .vpc = plan.vpc,
                     .machine = find_controller(controller.state)->instance,
                     .logs_to = logs_to,
                     .s3_endpoint = TRY(aws_endpoint(process_aws_variables(), "S3")),
                     .state = cloud_state_json(inside),
                     .setup = has_setup ? TRY(controller.folder.read(kSetupFile)) : "",
                     .keys = {}};
  if (!plan.controller_profile.empty()) return charge;
  AwsApi api = TRY(AwsApi::open({.region = plan.region, .endpoint = plan.endpoint}));
  auto keys = lend_keys(api, plan, logs_to, unix_seconds_now());
  if (!keys) {
    keys.error().message += "; a cluster that is made with --controller-profile needs no keys of yours";
    return keys.error();
  }
  charge.keys = *std::move(keys);
  return charge;
}

Result<> give_away(const CloudController& controller) {
  CloudState state = controller.state;
  state.step = "given";
  TRY(controller.folder.write("state.json", cloud_state_json(state)));
  std::error_code ignored;
  std::filesystem::remove(controller.folder.path("cluster.json"), ignored);
  return {};
}

Result<std::string> controller_login(const CloudState& state, const std::string& public_key) {
  const CloudMachine* machine = find_controller(state);
  if (machine == nullptr) return not_found("the cluster '{}' has no controller", state.plan.name);
  return fmt::format("from=\"{}\",restrict {}", machine->private_address, public_key.substr(0, public_key.find('\n')));
}

}  // namespace pscloud

#include "launch/cloud/cloud_folder.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>

#include "base/json.h"
#include "base/json_value.h"
#include "base/suggest.h"
#include "launch/backend.h"
#include "launch/cloud/machine_keeper.h"
#include "launch/cloud/user_data.h"
#include "launch/process/tool.h"

namespace pscloud {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds kToMakeKey{30};
constexpr const char* kStateFile = "state.json";
constexpr const char* kClusterFile = "cluster.json";
constexpr const char* kKnownHostsFile = "known_hosts";

std::string other_order(const std::string& name) {  // "worker-0" of "0.worker"
  const size_t dot = name.find('.');
  return dot == std::string::npos ? name : fmt::format("{}-{}", name.substr(dot + 1), name.substr(0, dot));
}

// "node-0" of "worker-0" or "server-0": machines that are for all roles are called so, and there are no others then.
std::string of_any_role(const std::string& name) {
  for (const char* role : {"worker-", "server-"}) {
    if (name.starts_with(role)) return "node-" + name.substr(std::strlen(role));
  }
  return name;
}

}  // namespace

std::string ssh_config_of(const std::string& folder) {
  return fmt::format("UserKnownHostsFile \"{}/{}\"\nGlobalKnownHostsFile /dev/null\nHashKnownHosts no\n", folder,
                     kKnownHostsFile);
}

Result<std::string> find_clusters_folder() {
  return fs::path(TRY(find_runs_folder())).parent_path().string() + "/clusters";
}

std::string cloud_state_json(const CloudState& state) {
  JsonWriter json;
  json.begin_object().field("step", state.step).field("made_unix", state.made_unix);
  if (state.inside) json.field("inside", true);
  json.key("machines").begin_array();
  for (const CloudMachine& machine : state.machines) {
    json.begin_object().field("name", machine.name).field("role", machine.role).field("instance", machine.instance);
    json.field("private_address", machine.private_address).field("public_address", machine.public_address);
    json.field("spot", machine.spot);
    if (!machine.instead_of.empty()) json.field("instead_of", machine.instead_of);
    if (machine.dollars_per_hour) json.field("dollars_per_hour", *machine.dollars_per_hour);
    json.end_object();
  }
  const std::string head = json.end_array().text();
  return fmt::format("{},\"plan\":{}}}\n", head, cloud_plan_json(state.plan));
}

Result<CloudState> parse_cloud_state(std::string_view text) {
  const JsonValue value = TRY(JsonValue::parse(text));
  CloudState state;
  state.plan = TRY(parse_cloud_plan(value["plan"]));
  state.step = value["step"].text();
  state.made_unix = value["made_unix"].integer();
  state.inside = value["inside"].truth();
  for (const JsonValue& each : value["machines"].items()) {
    state.machines.push_back({.name = each["name"].text(),
                              .role = each["role"].text(),
                              .instance = each["instance"].text(),
                              .private_address = each["private_address"].text(),
                              .public_address = each["public_address"].text(),
                              .spot = each["spot"].truth(),
                              .instead_of = each["instead_of"].text(),
                              .dollars_per_hour = {}});
    const JsonValue& dollars = each["dollars_per_hour"];
    if (dollars.is(JsonValue::Kind::kNumber)) state.machines.back().dollars_per_hour = dollars.number();
  }
  return state;
}

Result<RunFolder> create_cloud_folder(const CloudState& state) {
  const std::string& name = state.plan.name;
  for (const BackendKind& kind : backend_kinds()) {
    if (name == kind.name) return invalid("'{}' is a kind of cluster: choose another name", name);
  }
  const std::string clusters = TRY(find_clusters_folder());
  const auto taken = [&] {
    return invalid("there is a cluster '{}' already: `pscloud cluster show {}`, or `pscloud cluster down {}`", name,
                   name, name);
  };
  remove_unborn(clusters);
  if (fs::exists(fmt::format("{}/{}", clusters, name))) return taken();
  RunFolder folder = TRY(RunFolder::create(clusters, name, true, [&](const std::string&) {
    return Result<std::map<std::string, std::string>>(
        std::map<std::string, std::string>{{kStateFile, cloud_state_json(state)}});
  }));
  if (folder.name() != name) {  // another process was faster
    fs::remove_all(folder.path());
    return taken();
  }
  const auto made = tool_answer(
      {"ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", cloud_name(state.plan), "-f", folder.path("id")}, "",
      kToMakeKey);
  auto configured = folder.write("ssh_config", ssh_config_of(folder.path()));
  if (configured) configured = folder.write(kKnownHostsFile, "");  // ssh would let everybody read it
  if (made && configured) return folder;
  fs::remove_all(folder.path());
  return made ? configured.error() : made.error();
}

Result<RunFolder> open_cloud_folder(const std::string& name) {
  const std::string clusters = TRY(find_clusters_folder());
  const std::vector<std::string> names = list_clouds();
  if (std::ranges::find(names, name) != names.end()) return RunFolder::open(clusters, name);
  const std::string near = suggest(name, names);
  return not_found("there is no cluster '{}'{}", name,
                   near.empty() ? ": `pscloud cluster ls` lists them" : fmt::format("; did you mean '{}'?", near));
}

Result<CloudState> read_cloud_state(const RunFolder& folder) {
  const std::string text = TRY(folder.read(kStateFile));
  return parse_cloud_state(text).at(folder.path(kStateFile));
}

std::vector<std::string> list_clouds() {
  std::vector<std::string> names;
  const auto clusters = find_clusters_folder();
  if (!clusters) return names;
  for (const RunEntry& entry : list_runs(*clusters)) names.push_back(entry.name);
  std::ranges::sort(names);
  return names;
}

Result<CloudMachine> find_machine(const CloudState& state, const std::string& name) {
  const std::string wanted = other_order(name);
  for (const std::string& each : {wanted, of_any_role(wanted)}) {
    const auto found = std::ranges::find(state.machines, each, &CloudMachine::name);
    if (found != state.machines.end()) return *found;
  }
  std::vector<std::string> names;
  for (const CloudMachine& machine : state.machines) names.push_back(machine.name);
  return not_found("the cluster '{}' has no machine '{}'; there are {}", state.plan.name, name, fmt::join(names, ", "));
}

std::optional<double> price_of_machine(const CloudState& state, const CloudMachine& machine) {
  if (machine.dollars_per_hour) return machine.dollars_per_hour;
  const auto group = std::ranges::find(state.plan.groups, machine.role, &CloudPlan::Group::role);
  if (group == state.plan.groups.end() || group->spot != machine.spot) return std::nullopt;
  return group->price.dollars;
}

Host host_of_machine(const RunFolder& folder, const CloudState& state, const CloudMachine& machine) {
  const std::optional<double> price = price_of_machine(state, machine);
  const bool outside = !state.inside && !state.plan.private_addresses && !machine.public_address.empty();
  return {.name = machine.name,
          .address = outside ? machine.public_address : machine.private_address,
          .user = state.plan.user,
          .port = 0,
          .identity_file = folder.path("id"),
          .interface = machine.private_address,
          .slots = 0,
          .roles = roles_of_machine(machine.role),
          .cost_usd_per_hour = price.value_or(0),
          .cost_unknown = !price,
          .spot = machine.spot};
}

Cluster cluster_of(const RunFolder& folder, const CloudState& state) {
  Cluster cluster;
  cluster.target = "ssh";
  cluster.cloud = state.plan.name;
  for (const CloudMachine& machine : state.machines) {
    if (machine.private_address.empty()) continue;  // it cannot be reached
    const Host host = host_of_machine(folder, state, machine);
    if (machine.role != kControllerRole) {
      cluster.hosts.push_back(host);
      continue;
    }
    // It has no tasks, and is there for all of them.
    cluster.cost_usd_per_hour = host.cost_usd_per_hour;
    cluster.cost_unknown = host.cost_unknown;
  }
  // Files in S3 are mostly where the machines are.
  cluster.environment = {{"AWS_REGION", state.plan.region}};
  if (!state.plan.swarm) {
    cluster.options = {{"ssh_config", folder.path("ssh_config")},
                       {"accept_new_host_keys", "no"},
                       {kIdleOption, std::to_string(state.plan.idle_s)}};
    return cluster;
  }
  // Tasks are in the network of their machines: nothing stands between them, and the role of a machine, whose keys its
  // metadata service tells to nobody further away, is that of its tasks.
  cluster.target = "swarm";
  cluster.options = {{"manager", state.plan.manager()},
                     {"ssh_config", folder.path("ssh_config")},
                     {kIdleOption, std::to_string(state.plan.idle_s)},
                     {"network", "host"},
                     {"mount", kMachineCache}};
  return cluster;
}

Result<> forget_host_key(const RunFolder& folder, const std::string& address) {
  const std::string known = TRY(folder.read(kKnownHostsFile));
  std::string kept;
  for (size_t at = 0; at < known.size();) {
    const size_t end = std::min(known.find('\n', at), known.size() - 1) + 1;
    const std::string_view line = std::string_view(known).substr(at, end - at);
    if (line.substr(0, line.find(' ')) != address) kept += line;
    at = end;
  }
  if (kept == known) return {};
  return folder.write(kKnownHostsFile, kept);
}

Result<std::string> find_cloud_cluster_file(const std::string& name) {
  const auto clusters = find_clusters_folder();
  if (!clusters) return std::string();
  const std::string folder = fmt::format("{}/{}", *clusters, name);
  if (name.empty() || name.front() == '.' || name.find('/') != std::string::npos) return std::string();
  if (::access(fmt::format("{}/{}", folder, kStateFile).c_str(), F_OK) != 0) return std::string();
  std::string file = fmt::format("{}/{}", folder, kClusterFile);
  if (::access(file.c_str(), F_OK) != 0) {
    return invalid("the cluster '{}' is not up, or its controller has a run: `pscloud cluster show {}` tells more",
                   name, name);
  }
  return file;
}

}  // namespace pscloud

#include "launch/swarm/swarm_spec.h"

#include <fmt/format.h>

#include "base/base64.h"
#include "base/json.h"
#include "base/text.h"

namespace pscloud {
namespace {

constexpr int64_t kNanosPerMs = 1000000;
constexpr int64_t kNanoCpus = 1000000000;
constexpr int kOwnerReads = 0400;
constexpr int kAllExecute = 0555;

void write_labels(JsonWriter& json, const Plan& plan, std::string_view task = {}, uint16_t port = 0) {
  json.key("Labels").begin_object().field(kSwarmJobLabel, plan.job).field("pscloud.run", plan.run);
  if (!task.empty()) json.field("pscloud.task", task);
  if (port != 0) json.field(kSwarmPortLabel, std::to_string(port));
  json.end_object();
}

void write_strings(JsonWriter& json, std::string_view name, const std::vector<std::string>& texts) {
  if (texts.empty()) return;
  json.key(name).begin_array();
  for (const std::string& text : texts) json.value(text);
  json.end_array();
}

// kind: "Secret" or "Config".
void write_files(JsonWriter& json, const std::string& kind, const std::vector<SwarmFile>& files,
                 const SwarmOptions& options) {
  if (files.empty()) return;
  const auto parsed = parse_container_user(options.user);
  const ContainerUser owner = parsed ? *parsed : ContainerUser();
  json.key(kind + "s").begin_array();
  for (const SwarmFile& file : files) {
    json.begin_object().field(kind + "ID", file.id).field(kind + "Name", file.name);
    json.key("File").begin_object().field("Name", file.path).field("UID", std::to_string(owner.user));
    json.field("GID", std::to_string(owner.group));
    json.field("Mode", kOwnerReads).end_object().end_object();
  }
  json.end_array();
}

void write_resources(JsonWriter& json, const Resources& resources) {
  if (resources.cpus == 0 && resources.memory_bytes == 0 && resources.gpus == 0) return;
  json.key("Resources").begin_object().key("Reservations").begin_object();
  if (resources.cpus > 0) json.field("NanoCPUs", resources.cpus * kNanoCpus);
  if (resources.memory_bytes > 0) json.field("MemoryBytes", resources.memory_bytes);
  if (resources.gpus > 0) {
    json.key("GenericResources").begin_array().begin_object().key("DiscreteResourceSpec").begin_object();
    json.field("Kind", "gpu").field("Value", resources.gpus).end_object().end_object().end_array();
  }
  json.end_object().end_object();
}

void write_mounts(JsonWriter& json, const std::vector<ContainerMount>& mounts) {
  if (mounts.empty()) return;
  json.key("Mounts").begin_array();
  for (const ContainerMount& mount : mounts) {
    json.begin_object().field("Type", mount.is_path() ? "bind" : "volume").field("Source", mount.source);
    json.field("Target", mount.target).field("ReadOnly", mount.read_only).end_object();
  }
  json.end_array();
}

}  // namespace

Result<SwarmOptions> read_swarm_options(const Cluster& cluster) {
  SwarmOptions options;
  options.host = option_of(cluster, "host");
  const std::string network = option_of(cluster, "network");
  if (!network.empty() && network != "overlay" && network != "host") {
    return invalid("swarm:network={}: it is overlay or host", network);
  }
  options.host_network = network == "host";
  const std::string port = option_of(cluster, "port");
  if (!port.empty() && !parse_number<uint16_t>(port, 1, 65535, options.port)) {
    return invalid("swarm:port={}: a number from 1 to 65535", port);
  }
  options.user = option_of(cluster, "user");
  if (!options.user.empty()) TRY(parse_container_user(options.user).at("swarm:user=" + options.user));
  const std::string init = option_of(cluster, "init");
  if (!init.empty() && init != "on" && init != "off") return invalid("swarm:init={}: it is on or off", init);
  options.init = init != "off";
  const std::string socket = option_of(cluster, "socket");
  if (!socket.empty() && socket != "off" && !socket.starts_with('/')) {
    return invalid("swarm:socket={}: it is a path on the nodes, or off", socket);
  }
  if (!socket.empty()) options.socket = socket == "off" ? "" : socket;
  options.mounts = TRY(container_mounts(cluster));
  options.machines = TRY(read_swarm_machines(cluster));
  return options;
}

std::string swarm_name(const Plan& plan, std::string_view thing) {
  return fmt::format("{}-{}-{}", plan.run, plan.job, thing);
}

std::string swarm_network_json(const Plan& plan) {
  JsonWriter json;
  json.begin_object().field("Name", swarm_name(plan, "network")).field("Driver", "overlay");
  json.field("CheckDuplicate", true);
  write_labels(json, plan);
  return json.end_object().text();
}

std::string swarm_data_json(const Plan& plan, const std::string& name, std::string_view content, uint16_t port) {
  JsonWriter json;
  json.begin_object().field("Name", name);
  write_labels(json, plan, {}, port);
  return json.field("Data", base64(content)).end_object().text();
}

std::string swarm_port_name(std::string_view port) { return fmt::format("pscloud-port-{}", port); }

std::string swarm_literal(std::string_view value) {
  std::string literal;
  for (size_t at = 0; at < value.size();) {
    if (value.substr(at).starts_with("{{")) {
      literal += R"({{"{{"}})";
      at += 2;
    } else {
      literal += value[at++];
    }
  }
  return literal;
}

// Replicated once and never restarted, workers too: an engine that removes a replicated job leaves its container there
// (20.10: one that runs goes on running), and one that has ended ends only once here, since it is removed then.
std::string swarm_service_json(const Plan& plan, const PlannedTask& task, const ContainerTask& container,
                               const SwarmOptions& options, const SwarmPlace& place,
                               const std::vector<SwarmFile>& secrets, const std::vector<SwarmFile>& configs) {
  JsonWriter json;
  json.begin_object().field("Name", swarm_name(plan, container.name));
  write_labels(json, plan, container.name, options.host_network ? place.address.port : uint16_t{0});
  json.key("TaskTemplate").begin_object();

  json.key("ContainerSpec").begin_object().field("Image", container.image);
  write_labels(json, plan, container.name);
  write_strings(json, "Args", container.arguments);
  std::vector<std::string> variables;
  for (const auto& [name, value] : container.variables) variables.push_back(name + "=" + swarm_literal(value));
  write_strings(json, "Env", variables);
  const std::string folder = configs.empty() ? container.folder : kContainerFiles;
  if (!folder.empty()) json.field("Dir", folder);
  if (!options.user.empty()) json.field("User", options.user);
  if (!options.host_network) json.field("Hostname", container.name);
  json.field("Init", options.init).field("StopGracePeriod", plan.stop_grace_ms * kNanosPerMs);
  write_mounts(json, options.mounts);
  write_files(json, "Secret", secrets, options);
  write_files(json, "Config", configs, options);
  json.end_object();

  write_resources(json, task.resources);
  json.key("RestartPolicy").begin_object().field("Condition", "none").end_object();
  if (!place.node.empty()) {
    json.key("Placement").begin_object();
    write_strings(json, "Constraints", {"node.id==" + place.node});
    json.end_object();
  }
  json.key("Networks").begin_array().begin_object().field("Target", place.network);
  if (!options.host_network) write_strings(json, "Aliases", {container.name});
  json.end_object().end_array();
  // Others cannot be read from here.
  json.key("LogDriver").begin_object().field("Name", "json-file").end_object();
  json.end_object();

  json.key("Mode").begin_object().key("Replicated").begin_object().field("Replicas", 1).end_object().end_object();
  // One name, one address: nothing stands between two tasks.
  json.key("EndpointSpec").begin_object().field("Mode", "dnsrr").end_object();
  return json.end_object().text();
}

std::string swarm_call_json(const Plan& plan, std::string_view name, const std::string& node, const std::string& image,
                            const SwarmFile& program, const std::string& socket,
                            const std::vector<std::string>& requests) {
  constexpr const char* kSocketThere = "/run/pscloud-engine.sock";
  JsonWriter json;
  json.begin_object().field("Name", swarm_name(plan, name));
  write_labels(json, plan);
  json.key("TaskTemplate").begin_object();

  json.key("ContainerSpec").begin_object().field("Image", image);
  write_labels(json, plan);
  std::vector<std::string> words{program.path, kSocketThere};
  words.insert(words.end(), requests.begin(), requests.end());
  write_strings(json, "Command", words);
  json.field("User", "0").field("Init", false).field("ReadOnly", true).field("StopGracePeriod", 0);
  write_strings(json, "CapabilityDrop", {"ALL"});
  json.key("Healthcheck").begin_object();
  write_strings(json, "Test", {"NONE"});
  json.end_object();
  write_mounts(json, {{socket, kSocketThere, true}});
  json.key("Configs").begin_array().begin_object();
  json.field("ConfigID", program.id).field("ConfigName", program.name).key("File").begin_object();
  json.field("Name", program.path).field("UID", "0").field("GID", "0").field("Mode", kAllExecute);
  json.end_object().end_object().end_array();
  json.end_object();

  json.key("RestartPolicy").begin_object().field("Condition", "none").end_object();
  json.key("Placement").begin_object();
  write_strings(json, "Constraints", {"node.id==" + node});
  json.end_object();
  // It uses none; to make one of its own would take half of the time.
  json.key("Networks").begin_array().begin_object().field("Target", "host").end_object().end_array();
  json.key("LogDriver").begin_object().field("Name", "json-file").end_object();
  json.end_object();

  json.key("Mode").begin_object().key("Replicated").begin_object().field("Replicas", 1).end_object().end_object();
  json.key("EndpointSpec").begin_object().field("Mode", "dnsrr").end_object();
  return json.end_object().text();
}

bool is_over(std::string_view state) {
  return state == "complete" || state == "shutdown" || state == "failed" || state == "rejected" || state == "remove" ||
         state == "orphaned";
}

}  // namespace pscloud

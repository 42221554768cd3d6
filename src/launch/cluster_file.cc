#include "launch/cluster_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/json.h"
#include "base/suggest.h"
#include "io/file_store.h"
#include "launch/backend.h"
#include "launch/cloud/cloud_folder.h"
#include "launch/json_fields.h"

namespace pscloud {
namespace {

constexpr uint64_t kClusterFileBytesMax = 16 << 20;
constexpr int kSlotsMax = 100000;
constexpr double kCostMax = 1e6;
constexpr const char* kPoseidonUser = "ubuntu";  // as psd_run has it

// What a host, a group of hosts and the file itself may say of how hosts are reached; the nearest word counts.
Result<> read_access(JsonFields& fields, Host& host) {
  TRY(fields.read("user", host.user));
  TRY(fields.read("username", host.user));
  TRY(fields.read("identity_file", host.identity_file));
  TRY(fields.read("pem_file", host.identity_file));
  TRY(fields.read("interface", host.interface));
  int port = host.port;
  TRY(fields.read("port", port, 1, 65535));
  host.port = static_cast<uint16_t>(port);
  TRY(fields.read("slots", host.slots, 0, kSlotsMax));
  if (fields.has("roles")) {
    host.roles.clear();
    TRY(fields.read("roles", host.roles));
  }
  return {};
}

// ssh takes what begins so for a flag.
Result<> check_address(const JsonFields& fields, const JsonValue& at, const std::string& address) {
  if (address.empty() || address.front() == '-' || address.find_first_of(" \t\n'\"@") != std::string::npos) {
    return fields.wrong(at, "'{}' is no name or address of a host", address);
  }
  return {};
}

Result<Host> read_host(const JsonValue& value, Host host, JsonFields& around, std::string_view file) {
  if (value.is(JsonValue::Kind::kString)) {
    host.name = host.address = value.text();
    TRY(check_address(around, value, host.address));
    return host;
  }
  JsonFields fields = TRY(JsonFields::of(value, file, "a host"));
  TRY(fields.read("address", host.address));
  if (host.address.empty()) return fields.wrong(value, "this host has no 'address'");
  host.name = host.address;
  TRY(fields.read("name", host.name));
  TRY(check_address(fields, value, host.address));
  TRY(check_address(fields, value, host.name));
  TRY(read_access(fields, host));
  TRY(fields.read("cost_usd_per_hour", host.cost_usd_per_hour, 0, kCostMax));
  TRY(fields.read("cost_unknown", host.cost_unknown));
  TRY(fields.read("spot", host.spot));
  TRY(fields.finish());
  return host;
}

Result<> read_hosts(JsonFields& fields, std::string_view name, const Host& defaults, std::string_view file,
                    std::vector<Host>& hosts) {
  const JsonValue& list = fields.value(name);
  if (list.is(JsonValue::Kind::kNull)) return {};
  if (!list.is(JsonValue::Kind::kArray)) return fields.wrong(list, "'{}' must be a list of hosts", name);
  for (const JsonValue& value : list.items()) hosts.push_back(TRY(read_host(value, defaults, fields, file)));
  return {};
}

// {"groups": [{"hosts": ["a", "b"], "roles": ["server"], "slots": 2}, ...]}
Result<> read_groups(JsonFields& fields, const Host& defaults, std::string_view file, std::vector<Host>& hosts) {
  const JsonValue& groups = fields.value("groups");
  if (groups.is(JsonValue::Kind::kNull)) return {};
  if (!groups.is(JsonValue::Kind::kArray)) return fields.wrong(groups, "'groups' must be a list");
  for (const JsonValue& value : groups.items()) {
    JsonFields group = TRY(JsonFields::of(value, file, "a group"));
    Host of_group = defaults;
    std::string name;  // for people
    TRY(group.read("name", name));
    TRY(read_access(group, of_group));
    TRY(group.read("cost_usd_per_hour", of_group.cost_usd_per_hour, 0, kCostMax));
    TRY(read_hosts(group, "hosts", of_group, file, hosts));
    TRY(group.finish());
  }
  return {};
}

// The three lists of psd_run: a host for each task.
Result<> read_poseidon(JsonFields& fields, const Host& defaults, std::string_view file, Cluster& cluster) {
  cluster.poseidon = fields.has("worker_nodes") || fields.has("server_nodes");
  Host host = defaults;
  if (cluster.poseidon && host.user.empty()) host.user = kPoseidonUser;
  host.roles = {TaskRole::kWorker};
  TRY(read_hosts(fields, "worker_nodes", host, file, cluster.hosts));
  host.roles = {TaskRole::kServer};
  TRY(read_hosts(fields, "server_nodes", host, file, cluster.hosts));
  std::string master;
  TRY(fields.read("master_node", master));
  if (!cluster.poseidon && master.empty()) return {};
  host.roles = {TaskRole::kScheduler};
  host.name = host.address = master.empty() ? "localhost" : master;
  TRY(check_address(fields, fields.value("master_node"), host.address));
  cluster.hosts.push_back(host);
  return {};
}

Result<> read_resources(JsonFields& fields, std::string_view file, Cluster& cluster) {
  const JsonValue& roles = fields.value("resources");
  if (roles.is(JsonValue::Kind::kNull)) return {};
  JsonFields by_role = TRY(JsonFields::of(roles, file, "'resources'"));
  for (const auto& [name, value] : roles.members()) {
    const auto role = parse_role(name);
    if (!role) return by_role.wrong(value, "{}", role.error().message);
    cluster.resources.emplace_back(*role, TRY(parse_resources(value, file)));
  }
  return {};
}

void write_texts(JsonWriter& json, std::string_view name, const std::vector<std::string>& texts) {
  if (texts.empty()) return;
  json.key(name).begin_array();
  for (const std::string& text : texts) json.value(text);
  json.end_array();
}

void write_text(JsonWriter& json, std::string_view name, const std::string& text) {
  if (!text.empty()) json.field(name, text);
}

void write_variables(JsonWriter& json, std::string_view name, const Variables& variables) {
  if (variables.empty()) return;
  json.key(name).begin_object();
  for (const auto& [key, value] : variables) json.field(key, value);
  json.end_object();
}

void write_host(JsonWriter& json, const Host& host) {
  json.begin_object().field("name", host.name).field("address", host.address);
  write_text(json, "user", host.user);
  write_text(json, "identity_file", host.identity_file);
  write_text(json, "interface", host.interface);
  if (host.port != 0) json.field("port", static_cast<int>(host.port));
  if (host.slots != 0) json.field("slots", host.slots);
  if (host.spot) json.field("spot", true);
  if (host.cost_usd_per_hour > 0) json.field("cost_usd_per_hour", host.cost_usd_per_hour);
  if (host.cost_unknown) json.field("cost_unknown", true);
  std::vector<std::string> roles;
  for (const TaskRole role : host.roles) roles.emplace_back(role_name(role));
  write_texts(json, "roles", roles);
  json.end_object();
}

// By its name a host is known everywhere: two that share one would be one, and the other never used.
Result<> check_names(const std::vector<Host>& hosts, std::string_view file) {
  std::map<std::string, const Host*> by_name;
  for (const Host& host : hosts) {
    const auto [first, is_new] = by_name.emplace(host.name, &host);
    const Host& other = *first->second;
    if (!is_new && (other.address != host.address || other.port != host.port || other.user != host.user)) {
      return invalid("{}: two hosts are called '{}', and differ in address, port or user: give each a \"name\"", file,
                     host.name);
    }
  }
  return {};
}

// "partition=gpu,time=60", and for ssh "host1,host2".
Result<> read_option_list(std::string_view list, Cluster& cluster) {
  while (!list.empty()) {
    const std::string_view item = list.substr(0, list.find(','));
    list.remove_prefix(std::min(item.size() + 1, list.size()));
    const size_t equals = item.find('=');
    if (equals != std::string_view::npos && equals > 0) {
      const std::string name(item.substr(0, equals));
      if (name == "image") {
        cluster.image = item.substr(equals + 1);
      } else {
        cluster.options.emplace_back(name, item.substr(equals + 1));
      }
    } else if (cluster.target == "ssh" && !item.empty() && item.front() != '-') {
      const size_t at = item.find('@');
      Host host;
      if (at != std::string_view::npos) host.user = item.substr(0, at);
      host.name = host.address = item.substr(at == std::string_view::npos ? 0 : at + 1);
      cluster.hosts.push_back(std::move(host));
    } else {
      return invalid("'{}' in '{}:...' is no option: name=value, and a comma between two", item, cluster.target);
    }
  }
  return {};
}

}  // namespace

Result<Resources> parse_resources(const JsonValue& value, std::string_view file) {
  JsonFields fields = TRY(JsonFields::of(value, file, "resources"));
  Resources resources;
  TRY(fields.read("cpus", resources.cpus, 0, 1 << 20));
  TRY(fields.read("gpus", resources.gpus, 0, 1 << 20));
  TRY(fields.read_bytes("memory", resources.memory_bytes));
  TRY(fields.finish());
  return resources;
}

Result<Cluster> parse_cluster_file(std::string_view text, std::string_view file) {
  auto parsed = JsonValue::parse(text);
  if (!parsed) return invalid("{}:{}", file, parsed.error().message);
  JsonFields fields = TRY(JsonFields::of(*parsed, file, "a cluster file"));
  Cluster cluster;
  Host defaults;
  cluster.target = "ssh";
  TRY(fields.read("target", cluster.target));
  TRY(fields.read("virtualenv", cluster.virtualenv));
  TRY(fields.read("environment", cluster.environment));
  TRY(fields.read("files", cluster.files));
  TRY(fields.read("image", cluster.image));
  TRY(fields.read("cloud", cluster.cloud));
  TRY(fields.read("options", cluster.options));
  TRY(fields.read("cost_usd_per_hour", cluster.cost_usd_per_hour, 0, kCostMax));
  TRY(fields.read("cost_unknown", cluster.cost_unknown));
  TRY(read_access(fields, defaults));
  TRY(read_hosts(fields, "hosts", defaults, file, cluster.hosts));
  TRY(read_groups(fields, defaults, file, cluster.hosts));
  TRY(read_poseidon(fields, defaults, file, cluster));
  TRY(fields.read("poseidon", cluster.poseidon));
  TRY(read_resources(fields, file, cluster));
  TRY(fields.finish());
  if (cluster.target == "ssh" && cluster.hosts.empty()) {
    return invalid("{}: no host stands in it; \"hosts\": [\"10.0.0.1\", \"10.0.0.2\"], say (docs/launch.md)", file);
  }
  TRY(check_names(cluster.hosts, file));
  return cluster;
}

std::string cluster_json(const Cluster& cluster) {
  JsonWriter json;
  json.begin_object().field("target", cluster.target);
  if (!cluster.hosts.empty()) {
    json.key("hosts").begin_array();
    for (const Host& host : cluster.hosts) write_host(json, host);
    json.end_array();
  }
  write_text(json, "virtualenv", cluster.virtualenv);
  write_text(json, "image", cluster.image);
  write_text(json, "cloud", cluster.cloud);
  write_texts(json, "files", cluster.files);
  write_variables(json, "environment", cluster.environment);
  write_variables(json, "options", cluster.options);
  if (!cluster.resources.empty()) {
    json.key("resources").begin_object();
    for (const auto& [role, resources] : cluster.resources) {
      json.key(role_name(role)).begin_object().field("cpus", resources.cpus);
      json.field("memory", resources.memory_bytes).field("gpus", resources.gpus).end_object();
    }
    json.end_object();
  }
  if (cluster.poseidon) json.field("poseidon", true);
  if (cluster.cost_usd_per_hour > 0) json.field("cost_usd_per_hour", cluster.cost_usd_per_hour);
  if (cluster.cost_unknown) json.field("cost_unknown", true);
  return json.end_object().text();
}

Result<Cluster> find_cluster(const std::string& on) {
  const std::string kind = on.substr(0, on.find(':'));
  std::vector<std::string> kinds;
  for (const BackendKind& each : backend_kinds()) kinds.emplace_back(each.name);
  if (std::ranges::find(kinds, kind) != kinds.end()) {
    Cluster cluster;
    cluster.target = kind;
    if (kind.size() < on.size()) TRY(read_option_list(std::string_view(on).substr(kind.size() + 1), cluster));
    if (kind == "ssh" && cluster.hosts.empty()) {
      return invalid("--on ssh needs hosts: a cluster file (--on cluster.json), or ssh:host1,host2");
    }
    TRY(check_names(cluster.hosts, on));
    return cluster;
  }
  const std::string of_cloud = TRY(find_cloud_cluster_file(on));
  const std::string& path = of_cloud.empty() ? on : of_cloud;
  const auto store = make_local_store();
  const auto input = store->open(path, {});
  if (!input) {
    const std::string near = suggest(kind, kinds);
    return invalid("--on {}: no such cluster or cluster file, and no kind of cluster{}; there are {}", on,
                   near.empty() ? "" : fmt::format(" (did you mean '{}'?)", near), fmt::join(kinds, ", "));
  }
  const auto text = read_all(**input, kClusterFileBytesMax);
  if (!text) return invalid("{}: {}", path, text.error().message);
  return parse_cluster_file(*text, path);
}

}  // namespace pscloud

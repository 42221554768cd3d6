#include "launch/cloud/cloud_plan.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/clock.h"
#include "base/json.h"
#include "base/json_value.h"
#include "base/text.h"
#include "launch/cloud/lent_keys.h"

namespace pscloud {
namespace {

constexpr int kNodesMax = 1000;  // TerminateInstances takes no more in one call
constexpr size_t kNameMax = 40;
constexpr int kDurationMax = 30 * 86400;
// A launcher and a server of small files: a gigabyte is plenty.
#ifdef __aarch64__
constexpr const char* kControllerType = "t4g.micro";
#else
constexpr const char* kControllerType = "t3.micro";
#endif

bool is_cluster_name(std::string_view name) {
  const auto good = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_'; };
  return !name.empty() && name.size() <= kNameMax && name.front() != '-' && std::ranges::all_of(name, good);
}

bool is_price(const std::string& text) {
  double price = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), price);
  return error == std::errc() && end == text.data() + text.size() && price > 0 && std::isfinite(price);
}

std::vector<MachineGroup> with_controller(const CloudRequest& request, std::vector<MachineGroup> groups) {
  if (!request.controller) return groups;
  const std::string& type = request.controller_instance;
  groups.push_back({kControllerRole, 1, type.empty() ? kControllerType : type, false});
  return groups;
}

std::string time_text(int64_t unix_s) { return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(unix_s)); }

std::string price_text(const CloudPrice& price) {
  return price.dollars ? fmt::format("${:.4f}", *price.dollars) : "unknown";
}

void add_group_json(JsonWriter& json, const CloudPlan::Group& group) {
  json.begin_object().field("role", group.role).field("count", group.count).field("type", group.type);
  json.field("spot", group.spot).field("vcpus", group.what.vcpus).field("memory_mib", group.what.memory_mib);
  json.field("gpus", group.what.gpus);
  if (group.price.dollars) json.field("dollars_per_hour", *group.price.dollars);
  if (!group.price.unknown.empty()) json.field("price_unknown", group.price.unknown);
  json.end_object();
}

CloudPlan::Group group_of(const JsonValue& value) {
  CloudPlan::Group group;
  group.role = value["role"].text();
  group.count = static_cast<int>(value["count"].integer());
  group.type = group.what.name = value["type"].text();
  group.spot = value["spot"].truth();
  group.what.vcpus = static_cast<int>(value["vcpus"].integer());
  group.what.memory_mib = value["memory_mib"].integer();
  group.what.gpus = static_cast<int>(value["gpus"].integer());
  const JsonValue& dollars = value["dollars_per_hour"];
  if (dollars.is(JsonValue::Kind::kNumber)) group.price.dollars = dollars.number();
  group.price.unknown = value["price_unknown"].text();
  return group;
}

std::string quota_text(const CloudQuota& quota) {
  if (!quota.limit) return fmt::format("{} vCPUs {}; not checked: {}", quota.wanted, quota.what, quota.unknown);
  return fmt::format("{} vCPUs {}; {:g} of {:g} are in use", quota.wanted, quota.what, quota.used, *quota.limit);
}

}  // namespace

Result<std::vector<MachineGroup>> machine_groups(const CloudRequest& request) {
  if (!is_cluster_name(request.name)) {
    return invalid("'{}' is no name of a cluster: up to {} of a-z, 0-9, - and _", request.name, kNameMax);
  }
  if (request.nodes < 1 || request.nodes > kNodesMax) return invalid("--nodes is 1 to {}", kNodesMax);
  if (!request.max_price.empty() && !request.spot) return invalid("--max-price is for --spot");
  if (request.on_demand_fallback && !request.spot) return invalid("--on-demand-fallback is for --spot");
  if (!request.max_price.empty() && !is_price(request.max_price)) {
    return invalid("--max-price {}: dollars for an hour of one machine, such as 0.08", request.max_price);
  }
  if (!request.controller && !(request.controller_instance.empty() && request.controller_profile.empty())) {
    return invalid("--controller-instance and --controller-profile are for --controller");
  }
  const std::string server_type = request.servers_instance.empty() ? request.instance : request.servers_instance;
  const std::string worker_type = request.workers_instance.empty() ? request.instance : request.workers_instance;
  const bool apart = request.servers > 0 || request.spot || server_type != worker_type;
  if (!apart) {
    if (request.instance.empty()) return invalid("--instance is missing: c5.xlarge, say");
    return with_controller(request, {{"node", request.nodes, request.instance, false}});
  }
  const int servers = std::max(request.servers, 1);
  if (servers >= request.nodes) {
    return invalid("{} of {} machine{} are for servers{}: there is none for workers; choose more --nodes", servers,
                   request.nodes, request.nodes == 1 ? "" : "s",
                   request.spot ? " (on demand, because a job ends with its servers)" : "");
  }
  if (server_type.empty()) return invalid("--servers-instance or --instance is missing: c5.xlarge, say");
  if (worker_type.empty()) return invalid("--workers-instance or --instance is missing: c5.xlarge, say");
  return with_controller(request, {{"server", servers, server_type, false},
                                   {"worker", request.nodes - servers, worker_type, request.spot}});
}

std::vector<TaskRole> roles_of_machine(std::string_view role) {
  if (role == "server") return {TaskRole::kScheduler, TaskRole::kServer, TaskRole::kChief, TaskRole::kEvaluator};
  if (role == "worker") return {TaskRole::kWorker};
  return {};
}

int CloudPlan::machines() const {
  int count = 0;
  for (const Group& group : groups) count += group.count;
  return count;
}

std::string CloudPlan::manager() const { return groups.empty() ? "" : groups.front().role + "-0"; }

std::pair<double, bool> CloudPlan::dollars_per_hour() const {
  double sum = 0;
  bool all = true;
  for (const Group& group : groups) {
    sum += group.price.dollars.value_or(0) * group.count;
    all = all && group.price.dollars.has_value();
  }
  return {sum, all};
}

std::string cloud_plan_text(const CloudPlan& plan) {
  std::string text = fmt::format("cluster {} in {} ({}), image {} ({}), login {}\n\n", plan.name, plan.zone,
                                 plan.region, plan.image, plan.image_name, plan.user);
  text += fmt::format("{:<10} {:>5}  {:<14} {:>5} {:>9} {:>4}  {:<9} {:>10}\n", "ROLE", "COUNT", "TYPE", "VCPUS",
                      "MEMORY", "GPUS", "MARKET", "$/H EACH");
  for (const CloudPlan::Group& group : plan.groups) {
    text += fmt::format("{:<10} {:>5}  {:<14} {:>5} {:>5.1f} GiB {:>4}  {:<9} {:>10}\n", group.role, group.count,
                        group.type, group.what.vcpus, static_cast<double>(group.what.memory_mib) / 1024,
                        group.what.gpus, group.spot ? "spot" : "on demand", price_text(group.price));
  }
  text += "\n";
  if (!plan.other_zones.empty()) {
    text += fmt::format("zone     {}, or if it has no capacity the first of {} that has\n", plan.zone,
                        fmt::join(plan.other_zones, ", "));
  }
  text += "makes    ";
  text += plan.subnet.empty() ? fmt::format("subnet {} in {}\n", plan.subnet_cidr, plan.vpc)
                              : fmt::format("nothing in the network: the subnet {} is yours\n", plan.subnet);
  text += fmt::format("         security group: ssh from {}, everything within the group\n", plan.ssh_from);
  text += "         key pair: its private half stays here\n";
  if (plan.placement) text += "         placement group (cluster)\n";
  if (plan.swarm) {
    text += fmt::format("         a Docker Swarm of all machines{}: {} manages it\n",
                        plan.controller_subnet.empty() ? "" : " but the controller's", plan.manager());
  }
  if (!plan.instance_profile.empty()) text += fmt::format("uses     instance profile {}\n", plan.instance_profile);
  if (!plan.controller_subnet.empty()) {
    text += fmt::format("         a controller in the subnet {}, which stays; {}\n", plan.controller_subnet,
                        plan.controller_profile.empty() ? "each run lends it keys that can only take this cluster down"
                                                        : "instance profile " + plan.controller_profile);
    if (const int64_t may_lend_at = plan.expires_unix - kLentAtMost;
        plan.controller_profile.empty() && may_lend_at > unix_seconds_now()) {
      text += fmt::format(
          "         keys are lent for {0} h at most, and it may live longer: before {1} --detach needs "
          "--keep-cluster,\n"
          "         or a cluster with --controller-profile or --life {0}h\n",
          kLentAtMost / 3600, time_text(may_lend_at));
    }
  }
  for (const CloudQuota& quota : plan.quotas) text += fmt::format("quota    {}\n", quota_text(quota));
  const auto [dollars, all] = plan.dollars_per_hour();
  const bool none = std::ranges::none_of(plan.groups, [](const auto& each) { return each.price.dollars.has_value(); });
  text += none ? "price    unknown\n"
               : fmt::format("price    {}${:.4f} an hour for machines{}; disks and traffic are not counted\n",
                             all ? "" : "more than ", dollars, all ? "" : ", whose price is not known for all");
  for (const CloudPlan::Group& group : plan.groups) {
    if (!group.price.dollars) text += fmt::format("         {}: unknown: {}\n", group.type, group.price.unknown);
  }
  text += fmt::format("ends     by `pscloud cluster down {}`; by itself after {} without a word from here, or at {}\n",
                      plan.name, duration_text(plan.idle_s), time_text(plan.expires_unix));
  return text;
}

std::string cloud_plan_json(const CloudPlan& plan) {
  JsonWriter json;
  json.begin_object().field("name", plan.name).field("id", plan.id).field("provider", "ec2");
  json.field("region", plan.region).field("endpoint", plan.endpoint).field("owner", plan.owner);
  json.field("zone", plan.zone).field("vpc", plan.vpc).field("subnet", plan.subnet);
  json.field("subnet_cidr", plan.subnet_cidr).field("image", plan.image).field("image_name", plan.image_name);
  json.field("user", plan.user).field("ssh_from", plan.ssh_from).field("instance_profile", plan.instance_profile);
  json.field("controller_subnet", plan.controller_subnet).field("controller_profile", plan.controller_profile);
  json.field("max_price", plan.max_price).field("private_addresses", plan.private_addresses);
  json.field("placement", plan.placement).field("docker", plan.docker).field("swarm", plan.swarm);
  json.field("idle_s", plan.idle_s);
  json.field("on_demand_fallback", plan.on_demand_fallback).key("other_zones").begin_array();
  for (const std::string& zone : plan.other_zones) json.value(zone);
  json.end_array();
  json.key("kept_disks").begin_array();
  for (const KeptDisk& disk : plan.kept_disks) {
    json.begin_object().field("device", disk.device).field("gib", disk.gib).end_object();
  }
  json.end_array();
  json.field("expires_unix", plan.expires_unix).key("groups").begin_array();
  for (const CloudPlan::Group& group : plan.groups) add_group_json(json, group);
  json.end_array().key("quotas").begin_array();
  for (const CloudQuota& quota : plan.quotas) {
    json.begin_object().field("what", quota.what).field("wanted", quota.wanted);
    if (quota.limit) json.field("limit", *quota.limit).field("used", quota.used);
    if (!quota.unknown.empty()) json.field("unknown", quota.unknown);
    json.end_object();
  }
  const auto [dollars, all] = plan.dollars_per_hour();
  json.end_array().field("dollars_per_hour", dollars).field("price_complete", all);
  return json.end_object().text();
}

Result<CloudPlan> parse_cloud_plan(const JsonValue& value) {
  CloudPlan plan;
  const std::pair<const char*, std::string*> texts[] = {{"name", &plan.name},
                                                        {"id", &plan.id},
                                                        {"region", &plan.region},
                                                        {"endpoint", &plan.endpoint},
                                                        {"owner", &plan.owner},
                                                        {"zone", &plan.zone},
                                                        {"vpc", &plan.vpc},
                                                        {"subnet", &plan.subnet},
                                                        {"user", &plan.user},
                                                        {"subnet_cidr", &plan.subnet_cidr},
                                                        {"image", &plan.image},
                                                        {"image_name", &plan.image_name},
                                                        {"ssh_from", &plan.ssh_from},
                                                        {"instance_profile", &plan.instance_profile},
                                                        {"controller_subnet", &plan.controller_subnet},
                                                        {"controller_profile", &plan.controller_profile},
                                                        {"max_price", &plan.max_price}};
  for (const auto& [name, text] : texts) *text = value[name].text();
  plan.private_addresses = value["private_addresses"].truth();
  plan.placement = value["placement"].truth();
  plan.docker = value["docker"].truth();
  plan.on_demand_fallback = value["on_demand_fallback"].truth();
  for (const JsonValue& zone : value["other_zones"].items()) plan.other_zones.push_back(zone.text());
  for (const JsonValue& disk : value["kept_disks"].items()) {
    plan.kept_disks.push_back({disk["device"].text(), static_cast<int>(disk["gib"].integer())});
  }
  plan.swarm = value["swarm"].truth();
  plan.idle_s = static_cast<int>(value["idle_s"].integer());
  plan.expires_unix = value["expires_unix"].integer();
  for (const JsonValue& group : value["groups"].items()) plan.groups.push_back(group_of(group));
  if (plan.name.empty() || plan.id.empty() || plan.region.empty()) return corrupt("no plan of a cluster");
  return plan;
}

Result<> check_quotas(const CloudPlan& plan) {
  for (const CloudQuota& quota : plan.quotas) {
    if (!quota.limit || quota.used + quota.wanted <= *quota.limit) continue;
    return invalid(
        "your account may run {:g} vCPUs {} in {}, of which {:g} are in use, and this needs {}; choose fewer or "
        "smaller "
        "machines, or ask AWS for a higher limit; nothing was made",
        *quota.limit, quota.what, plan.region, quota.used, quota.wanted);
  }
  return {};
}

std::vector<std::pair<std::string, std::string>> cloud_tags(const CloudPlan& plan, std::string_view role) {
  return {{"Name", fmt::format("{}.{}", role, plan.name)},
          {kClusterTag, plan.name},
          {kIdTag, plan.id},
          {kRoleTag, std::string(role)},
          {kOwnerTag, plan.owner},
          {kExpiresTag, time_text(plan.expires_unix)}};
}

std::string cloud_name(const CloudPlan& plan) { return fmt::format("pscloud-{}-{}", plan.name, plan.id); }

Result<int> parse_duration(std::string_view text) {
  constexpr std::pair<char, int> kUnits[] = {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}};
  for (const auto& [unit, seconds] : kUnits) {
    int count = 0;
    if (text.empty() || text.back() != unit) continue;
    if (parse_number(text.substr(0, text.size() - 1), 1, kDurationMax / seconds, count)) return count * seconds;
  }
  return invalid("'{}' is no time: 90s, 30m, 12h or 2d, up to 30 days", text);
}

std::string duration_text(int64_t seconds) {
  if (seconds >= 86400 && seconds % 86400 == 0) return fmt::format("{} d", seconds / 86400);
  if (seconds >= 3600 && seconds % 3600 == 0) return fmt::format("{} h", seconds / 3600);
  if (seconds >= 60 && seconds % 60 == 0) return fmt::format("{} min", seconds / 60);
  return fmt::format("{} s", seconds);
}

}  // namespace pscloud

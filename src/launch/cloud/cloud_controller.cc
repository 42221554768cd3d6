#include "launch/cloud/cloud_controller.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "base/clock.h"
#include "base/json.h"
#include "launch/cloud/machine_wait.h"
#include "launch/process/tool.h"

namespace pscloud {
namespace {

constexpr const char* kControllerFile = "controller.json";
constexpr std::chrono::seconds kToAskController{30};
constexpr int64_t kLentAtLeast = 900;  // seconds; AWS's bounds
constexpr int64_t kLentAtMost = 36 * 3600;
constexpr int64_t kLentBeyond = 3600;  // for the end of what must end then

// Says where it is, and the public half of its key; the private one is made once and never leaves.
constexpr const char* kMakeKey =
    "umask 077; mkdir -p .pscloud && cd .pscloud && "
    "{ [ -f id ] || ssh-keygen -q -t ed25519 -N '' -C controller -f id; } && pwd && cat id.pub";
constexpr const char* kTakeKnownHosts = "cat > .pscloud/known_hosts";
constexpr const char* kTakeSshConfig = "cat > .pscloud/ssh_config";
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

Result<std::string> ask_controller(const ControllerWay& way, const char* command, const std::string& input) {
  std::vector<std::string> words = ssh_command(way.host, way.ssh, false);
  words.emplace_back(command);
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
  cluster.cloud.clear();  // its keys cannot make machines in the place of others
  for (Host& host : cluster.hosts) {
    host.address = host.interface;
    host.identity_file = there + "/id";
  }
  for (auto& [name, value] : cluster.options) {
    if (name == "ssh_config") value = there + "/ssh_config";
  }
  return cluster;
}

std::string partition_of(const std::string& region) {
  if (region.starts_with("cn-")) return "aws-cn";
  return region.starts_with("us-gov-") ? "aws-us-gov" : "aws";
}

}  // namespace

Result<> introduce_controller(const RunFolder& folder, const CloudState& state) {
  const CloudMachine* machine = find_controller(state);
  if (machine == nullptr) return {};
  const ControllerWay way = way_to(folder, state, *machine);
  const std::vector<std::string> made = lines_of_tool(TRY(ask_controller(way, kMakeKey, "")));
  if (made.size() < 2 || !made[made.size() - 2].starts_with('/') || !made.back().starts_with("ssh-ed25519 ")) {
    return job_failed("{} could not make a key for itself", machine->name);
  }
  const std::string& there = made[made.size() - 2];
  const std::string known = known_inside(folder, state, TRY(folder.read("known_hosts")));
  TRY(ask_controller(way, kTakeKnownHosts, known));
  TRY(ask_controller(way, kTakeSshConfig,
                     fmt::format("UserKnownHostsFile \"{}/known_hosts\"\nGlobalKnownHostsFile /dev/null\n", there)));
  const Cluster cluster = cluster_inside(folder, state, there);
  std::vector<Host> others;
  for (const CloudMachine& each : state.machines) {
    if (each.role != kControllerRole) others.push_back(host_of_machine(folder, state, each));
  }
  const std::vector<std::string> wrong =
      tell_machines(others, folder.path("ssh_config"), kTakeKey,
                    fmt::format("from=\"{}\",restrict {}\n", machine->private_address, made.back()));
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
  CloudCharge charge{.cluster = plan.name,
                     .id = plan.id,
                     .region = plan.region,
                     .endpoint = plan.endpoint,
                     .vpc = plan.vpc,
                     .machine = find_controller(controller.state)->instance,
                     .logs_to = logs_to,
                     .s3_endpoint = TRY(aws_endpoint(process_aws_variables(), "S3")),
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

std::string lent_policy(const CloudPlan& plan, const std::string& logs_to) {
  JsonWriter json;
  json.begin_object().field("Version", "2012-10-17").key("Statement").begin_array();
  const auto allow = [&](const std::vector<std::string>& actions, const std::string& resource, bool ours) {
    json.begin_object().field("Effect", "Allow").key("Action").begin_array();
    for (const std::string& action : actions) json.value(action);
    json.end_array().field("Resource", resource);
    if (ours) {
      json.key("Condition").begin_object().key("StringEquals").begin_object();
      json.field(fmt::format("aws:ResourceTag/{}", kIdTag), plan.id).end_object().end_object();
    }
    json.end_object();
  };
  const std::string partition = partition_of(plan.region);
  allow({"ec2:DescribeInstances", "ec2:DescribeKeyPairs", "ec2:DescribePlacementGroups", "ec2:DescribeSecurityGroups",
         "ec2:DescribeSpotInstanceRequests", "ec2:DescribeSubnets"},
        "*", false);
  allow({"ec2:CancelSpotInstanceRequests", "ec2:DeleteKeyPair", "ec2:DeletePlacementGroup", "ec2:DeleteSecurityGroup",
         "ec2:DeleteSubnet", "ec2:ModifyNetworkInterfaceAttribute", "ec2:TerminateInstances"},
        "*", true);
  // The group that an interface of ours is put into is not ours.
  allow({"ec2:ModifyNetworkInterfaceAttribute"}, fmt::format("arn:{}:ec2:*:*:security-group/*", partition), false);
  if (!logs_to.empty()) {
    std::string_view below = logs_to;
    below.remove_prefix(std::string_view("s3://").size());
    allow({"s3:AbortMultipartUpload", "s3:PutObject"}, fmt::format("arn:{}:s3:::{}/*", partition, below), false);
  }
  return json.end_array().end_object().text();
}

Result<AwsCredentials> lend_keys(AwsApi& api, const CloudPlan& plan, const std::string& logs_to, int64_t now_unix) {
  const int64_t seconds = std::clamp(plan.expires_unix - now_unix + kLentBeyond, kLentAtLeast, kLentAtMost);
  Ec2Form form;
  form.set("Name", "pscloud-" + plan.id).set("DurationSeconds", std::to_string(seconds));
  form.set("Policy", lent_policy(plan, logs_to));
  const XmlElement body = TRY(api.call_sts("GetFederationToken", form));
  const XmlElement* result = body.child("GetFederationTokenResult");
  const XmlElement* lent = result == nullptr ? nullptr : result->child("Credentials");
  if (lent == nullptr || lent->text_of("AccessKeyId").empty() || lent->text_of("SessionToken").empty()) {
    return corrupt("STS GetFederationToken: an answer without keys");
  }
  return AwsCredentials{.access_key_id = lent->text_of("AccessKeyId"),
                        .secret_access_key = lent->text_of("SecretAccessKey"),
                        .session_token = lent->text_of("SessionToken"),
                        .source = "who has started this run"};
}

}  // namespace pscloud

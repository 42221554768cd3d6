#include "launch/cloud/cloud_end.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "base/json.h"
#include "launch/cloud/aws_api.h"
#include "launch/cloud/cloud_sweep.h"
#include "launch/cloud/patience.h"

namespace pscloud {
namespace {

Result<AwsApi> open_api(const CloudCharge& charge, const TakeDownOptions& options) {
  return AwsApi::open({.environment = charge_variables(charge, options.environment),
                       .cancelled = options.cancelled,
                       .region = charge.region,
                       .endpoint = charge.endpoint});
}

// A launcher that was killed may just have asked for a machine, which then stands in the ledger.
SweepOptions all_but_itself(const CloudCharge& charge, const TakeDownOptions& options) {
  SweepOptions sweep{
      .say = options.say, .cancelled = options.cancelled, .timeout = options.timeout, .spared = charge.machine};
  const auto folder = open_cloud_folder(charge.cluster);
  const auto entries = folder ? Ledger::read(folder->path("ledger.jsonl")) : folder.error();
  if (!entries) return sweep;
  sweep.quiet_until = quiet_after(*entries, "instances", options.settle);
  sweep.known = known_ids(*entries);
  return sweep;
}

// Again and again, as long as EC2 does not answer or has an error of its own, until the time is over.
Result<> persist(const TakeDownOptions& options, const std::function<Result<>()>& act) {
  Patience patience(std::chrono::steady_clock::now() + options.timeout, options.cancelled);
  while (true) {
    auto done = act();
    if (done || !may_pass(done.error()) || patience.is_over()) return done;
    TRY(patience.pause());
  }
}

// The controller's interface leaves the cluster's group, which could not be removed else.
Result<> leave_group(AwsApi& api, const CloudCharge& charge) {
  const std::vector<Ec2Instance> instances = TRY(list_instances(api, charge.id));
  const auto own = std::ranges::find(instances, charge.machine, &Ec2Instance::id);
  if (own == instances.end() || own->interface.empty()) {
    return not_found("EC2 tells of no interface of {}", charge.machine);
  }
  const auto groups = TRY(api.list("DescribeSecurityGroups", "securityGroupInfo",
                                   Ec2Form().filter("vpc-id", {charge.vpc}).filter("group-name", {"default"})));
  if (groups.empty()) return not_found("{} has no group of its own", charge.vpc);
  Ec2Form form;
  form.set("NetworkInterfaceId", own->interface).set("SecurityGroupId.1", groups.front().text_of("groupId"));
  TRY(api.call("ModifyNetworkInterfaceAttribute", form));
  return {};
}

}  // namespace

// Keys that were lent are known to this alone; where there are none AWS's usual places are looked at, the role of the
// machine last.
AwsVariables charge_variables(const CloudCharge& charge, AwsVariables otherwise) {
  std::map<std::string, std::string, std::less<>> known{{"AWS_REGION", charge.region}};
  if (!charge.s3_endpoint.empty()) known["AWS_ENDPOINT_URL_S3"] = charge.s3_endpoint;
  if (!charge.keys.access_key_id.empty()) {
    known["AWS_ACCESS_KEY_ID"] = charge.keys.access_key_id;
    known["AWS_SECRET_ACCESS_KEY"] = charge.keys.secret_access_key;
    known["AWS_SESSION_TOKEN"] = charge.keys.session_token;
  }
  return [known, otherwise = std::move(otherwise)](const char* name) {
    const auto found = known.find(name);
    return found == known.end() ? otherwise(name) : found->second;
  };
}

std::string cloud_charge_json(const CloudCharge& charge) {
  JsonWriter json;
  json.begin_object().field("cluster", charge.cluster).field("id", charge.id).field("region", charge.region);
  json.field("endpoint", charge.endpoint).field("vpc", charge.vpc).field("machine", charge.machine);
  json.field("logs_to", charge.logs_to).field("s3_endpoint", charge.s3_endpoint);
  json.field("state", charge.state).field("setup", charge.setup);
  json.field("access_key_id", charge.keys.access_key_id).field("secret_access_key", charge.keys.secret_access_key);
  return json.field("session_token", charge.keys.session_token).end_object().text();
}

Result<CloudCharge> parse_cloud_charge(const JsonValue& value) {
  CloudCharge charge{.cluster = value["cluster"].text(),
                     .id = value["id"].text(),
                     .region = value["region"].text(),
                     .endpoint = value["endpoint"].text(),
                     .vpc = value["vpc"].text(),
                     .machine = value["machine"].text(),
                     .logs_to = value["logs_to"].text(),
                     .s3_endpoint = value["s3_endpoint"].text(),
                     .state = value["state"].text(),
                     .setup = value["setup"].text(),
                     .keys = {.access_key_id = value["access_key_id"].text(),
                              .secret_access_key = value["secret_access_key"].text(),
                              .session_token = value["session_token"].text(),
                              .source = "who has started this run"}};
  if (charge.id.empty() || charge.machine.empty() || charge.region.empty()) return corrupt("no cluster to look after");
  return charge;
}

Result<> take_charge(const CloudCharge& charge) {
  const std::string folder = fmt::format("{}/{}/", TRY(find_clusters_folder()), charge.cluster);
  if (!charge.setup.empty()) TRY(replace_file(folder + kSetupFile, charge.setup));
  return replace_file(folder + "state.json", charge.state);
}

Result<std::vector<std::string>> end_other_machines(const CloudCharge& charge, const TakeDownOptions& options) {
  AwsApi api = TRY(open_api(charge, options));
  return sweep_kinds(api, {"instances", "spot_requests", "placement_group"}, charge.id,
                     all_but_itself(charge, options));
}

Result<std::vector<std::string>> end_own_machine(const CloudCharge& charge, const TakeDownOptions& options) {
  AwsApi api = TRY(open_api(charge, options));
  // Whatever goes wrong on the way, the machine ends: it costs more than all that could be left.
  const auto left_group = persist(options, [&] { return leave_group(api, charge); });
  std::vector<std::string> left = sweep_kinds(api, cloud_kinds(), charge.id, all_but_itself(charge, options));
  if (!left_group) left.push_back(fmt::format("security_group: {}", left_group.error().message));
  for (const std::string& line : left) options.say("left: " + line);
  TRY(persist(options, [&]() -> Result<> {
    TRY(api.call("TerminateInstances", Ec2Form().set("InstanceId.1", charge.machine)));
    return {};
  }));
  return left;
}

}  // namespace pscloud

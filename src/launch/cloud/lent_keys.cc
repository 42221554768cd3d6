#include "launch/cloud/lent_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace pscloud {
namespace {

constexpr int64_t kLentAtLeast = 900;  // seconds; AWS's bounds
constexpr int64_t kLentBeyond = 3600;  // for the end of what must end then

std::string partition_of(const std::string& region) {
  if (region.starts_with("cn-")) return "aws-cn";
  return region.starts_with("us-gov-") ? "aws-us-gov" : "aws";
}

struct PolicyCondition {
  std::string test;  // "StringEquals"
  std::string key;
  std::vector<std::string> values;  // one of them
};

void write_texts(JsonWriter& json, const std::vector<std::string>& texts) {
  json.begin_array();
  for (const std::string& text : texts) json.value(text);
  json.end_array();
}

// A statement of a policy. All conditions hold.
void allow(JsonWriter& json, const std::vector<std::string>& actions, const std::vector<std::string>& resources,
           const std::vector<PolicyCondition>& conditions = {}) {
  json.begin_object().field("Effect", "Allow").key("Action");
  write_texts(json, actions);
  json.key("Resource");
  write_texts(json, resources);
  if (!conditions.empty()) {
    std::map<std::string, std::vector<const PolicyCondition*>> by_test;
    for (const PolicyCondition& each : conditions) by_test[each.test].push_back(&each);
    json.key("Condition").begin_object();
    for (const auto& [test, all] : by_test) {
      json.key(test).begin_object();
      for (const PolicyCondition* each : all) {
        json.key(each->key);
        write_texts(json, each->values);
      }
      json.end_object();
    }
    json.end_object();
  }
  json.end_object();
}

}  // namespace

std::string lent_policy(const CloudPlan& plan, const std::string& logs_to) {
  const std::string partition = partition_of(plan.region);
  const auto thing = [&](std::string_view what) { return fmt::format("arn:{}:ec2:*:*:{}/*", partition, what); };
  const PolicyCondition has_our_tag{"StringEquals", std::string("aws:ResourceTag/") + kIdTag, {plan.id}};
  const PolicyCondition gets_our_tag{"StringEquals", std::string("aws:RequestTag/") + kIdTag, {plan.id}};
  std::vector<std::string> on_ours{
      "ec2:CancelSpotInstanceRequests", "ec2:DeleteKeyPair", "ec2:DeletePlacementGroup",
      "ec2:DeleteSecurityGroup",        "ec2:DeleteSubnet",  "ec2:ModifyNetworkInterfaceAttribute",
      "ec2:TerminateInstances"};
  std::set<std::string> spot_types;
  for (const CloudPlan::Group& group : plan.groups) {
    if (group.spot) spot_types.insert(group.type);
  }
  // A machine is made of, and in, what is ours: group, key, placement group, subnet.
  if (!spot_types.empty()) on_ours.emplace_back("ec2:RunInstances");
  JsonWriter json;
  json.begin_object().field("Version", "2012-10-17").key("Statement").begin_array();
  allow(json,
        {"ec2:DescribeInstances", "ec2:DescribeKeyPairs", "ec2:DescribePlacementGroups", "ec2:DescribeSecurityGroups",
         "ec2:DescribeSpotInstanceRequests", "ec2:DescribeSubnets"},
        {"*"});
  allow(json, on_ours, {"*"}, {has_our_tag});
  // The group that an interface of ours is put into is not ours.
  allow(json, {"ec2:ModifyNetworkInterfaceAttribute"}, {thing("security-group")});
  if (!spot_types.empty()) {
    std::vector<PolicyCondition> alike{
        gets_our_tag, {"StringEqualsIfExists", "ec2:InstanceType", {spot_types.begin(), spot_types.end()}}};
    if (const std::string& profile = plan.instance_profile; !profile.empty()) {
      const std::string all = fmt::format("arn:{}:iam::*:instance-profile/", partition);
      alike.push_back({"ArnLikeIfExists", "ec2:InstanceProfile", {all + profile, all + "*/" + profile}});
      // Which roles there are is the profile's matter, and that is fixed. Without a profile none can be passed.
      allow(json, {"iam:PassRole"}, {"*"});
    }
    allow(json, {"ec2:RunInstances"},
          {thing("instance"), thing("network-interface"), thing("spot-instances-request"), thing("volume")}, alike);
    std::vector<std::string> given{fmt::format("arn:{}:ec2:*::image/{}", partition, plan.image)};
    if (!plan.subnet.empty()) given.push_back(fmt::format("arn:{}:ec2:*:*:subnet/{}", partition, plan.subnet));
    allow(json, {"ec2:RunInstances"}, given);
    allow(json, {"ec2:CreateTags"}, {"*"}, {gets_our_tag, {"StringEquals", "ec2:CreateAction", {"RunInstances"}}});
  }
  if (!logs_to.empty()) {
    std::string_view below = logs_to;
    below.remove_prefix(std::string_view("s3://").size());
    allow(json, {"s3:AbortMultipartUpload", "s3:PutObject"}, {fmt::format("arn:{}:s3:::{}/*", partition, below)});
  }
  return json.end_array().end_object().text();
}

Result<AwsCredentials> lend_keys(AwsApi& api, const CloudPlan& plan, const std::string& logs_to, int64_t now_unix) {
  if (plan.expires_unix - now_unix > kLentAtMost) {
    return invalid(
        "the machines of {} may live for {} h more, and AWS lends keys for {} h at most: a run that takes longer would "
        "take nothing down; --keep-cluster leaves that to you, and for a cluster made with --life {}h the keys last",
        plan.name, (plan.expires_unix - now_unix + 3599) / 3600, kLentAtMost / 3600, kLentAtMost / 3600);
  }
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

#include "launch/cloud/machine_order.h"

#include <fmt/format.h>

#include <vector>

#include "base/base64.h"
#include "launch/cloud/cloud_down.h"

namespace pscloud {
namespace {

Ec2Form order_form(const CloudPlan& plan, const MachineGroup& group, const MachineOrder& order) {
  Ec2Form form;
  const std::string count = std::to_string(group.count);
  form.set("ImageId", plan.image).set("InstanceType", group.type).set("MinCount", count).set("MaxCount", count);
  form.set("KeyName", cloud_name(plan)).set("UserData", base64(order.user_data));
  form.set("ClientToken", order.token);
  form.set("InstanceInitiatedShutdownBehavior", "terminate");
  form.set("MetadataOptions.HttpTokens", "required");
  const bool controls = group.role == kControllerRole;
  if (!controls) form.set("Placement.AvailabilityZone", plan.zone);  // a controller is where its subnet is
  if (plan.placement && !controls) form.set("Placement.GroupName", cloud_name(plan));
  const std::string& profile = controls ? plan.controller_profile : plan.instance_profile;
  if (!profile.empty()) form.set("IamInstanceProfile.Name", profile);
  form.set("NetworkInterface.1.DeviceIndex", "0");
  form.set("NetworkInterface.1.SubnetId", controls ? plan.controller_subnet : order.subnet);
  form.set("NetworkInterface.1.SecurityGroupId.1", order.security_group);
  form.set("NetworkInterface.1.DeleteOnTermination", "true");
  form.set("NetworkInterface.1.AssociatePublicIpAddress", plan.private_addresses ? "false" : "true");
  for (size_t i = 0; i < plan.kept_disks.size(); ++i) {
    const std::string disk = fmt::format("BlockDeviceMapping.{}.", i + 1);
    form.set(disk + "DeviceName", plan.kept_disks[i].device).set(disk + "Ebs.DeleteOnTermination", "true");
    form.set(disk + "Ebs.VolumeSize", std::to_string(plan.kept_disks[i].gib));
  }
  std::vector<std::string> types{"instance", "volume", "network-interface"};
  if (group.spot) {
    types.emplace_back("spot-instances-request");
    form.set("InstanceMarketOptions.MarketType", "spot");
    form.set("InstanceMarketOptions.SpotOptions.SpotInstanceType", "one-time");
    form.set("InstanceMarketOptions.SpotOptions.InstanceInterruptionBehavior", "terminate");
    if (!plan.max_price.empty()) form.set("InstanceMarketOptions.SpotOptions.MaxPrice", plan.max_price);
  }
  return form.tags(types, cloud_tags(plan, group.role));
}

Error explain_refusal(const CloudPlan& plan, const MachineGroup& group, const Ec2Answer& answer) {
  if (says_no_capacity(answer.refused)) {
    return unavailable("EC2 has not {} {}{} to give in {} now", group.count, group.type,
                       group.spot ? " spot machines" : "", plan.zone);
  }
  if (answer.refused == "SpotMaxPriceTooLow") {
    return invalid("the --max-price {} is lower than the price of {} in {} now", plan.max_price, group.type, plan.zone);
  }
  if (answer.refused == "VcpuLimitExceeded" || answer.refused == "MaxSpotInstanceCountExceeded" ||
      answer.refused == "InstanceLimitExceeded") {
    return invalid(
        "your account may not run so many {}{} in {} ({}): choose fewer or others, or ask AWS for a higher limit",
        group.type, group.spot ? " spot machines" : "", plan.region, answer.refused);
  }
  if (answer.refused == "AuthFailure.ServiceLinkedRoleCreationNotPermitted") {
    return invalid(
        "the first spot machine of an account needs the role AWSServiceRoleForEC2Spot, which these keys may not make: "
        "who has the permission iam:CreateServiceLinkedRole makes it, once, by `aws iam create-service-linked-role "
        "--aws-service-name spot.amazonaws.com`");
  }
  return answer.error;
}

std::vector<std::string> texts_of(const XmlElement& answer, std::string_view name) {
  std::vector<std::string> texts;
  const XmlElement* set = answer.child("instancesSet");
  if (set == nullptr) return texts;
  for (const XmlElement& item : set->children) {
    if (std::string text = item.text_of(name); !text.empty()) texts.push_back(std::move(text));
  }
  return texts;
}

}  // namespace

bool says_unknown_thing(const CloudPlan& plan, const std::string& code) {
  if (code == "InvalidSubnetID.NotFound") return plan.subnet.empty();  // or it is the user's
  return code == "InvalidGroup.NotFound" || code == "InvalidSecurityGroupID.NotFound" ||
         code == "InvalidKeyPair.NotFound" || code == "InvalidPlacementGroup.Unknown";
}

bool says_no_capacity(const std::string& text) {
  return text.find("InsufficientInstanceCapacity") != std::string::npos ||
         text.find("UnfulfillableCapacity") != std::string::npos;
}

Result<MachineAnswer> order_machines(AwsApi& api, Ledger& ledger, const CloudPlan& plan, const MachineGroup& group,
                                     const MachineOrder& order) {
  std::vector<uint64_t> entries;
  if (group.spot) entries.push_back(TRY(intend_thing(ledger, "spot_requests", group.role)));
  entries.push_back(TRY(intend_thing(ledger, "instances", group.role)));
  const Ec2Answer answer =
      TRY(api.ask_of_new("RunInstances", order_form(plan, group, order),
                         [&](const std::string& refused) { return says_unknown_thing(plan, refused); }));
  if (!answer.refused.empty()) {
    const bool no_capacity = says_no_capacity(answer.refused);
    // A refusal is sure: there is none. An answer that says that something went wrong within is not.
    for (const uint64_t entry : entries) {
      if (no_capacity || answer.error.code != Code::kUnavailable) TRY(ledger.gone(entry));
    }
    return MachineAnswer{.instance = "", .no_capacity = no_capacity, .error = explain_refusal(plan, group, answer)};
  }
  const std::vector<std::string> ids = texts_of(answer.body, "instanceId");
  TRY(learned_things(ledger, entries.back(), ids));
  if (group.spot) TRY(learned_things(ledger, entries.front(), texts_of(answer.body, "spotInstanceRequestId")));
  return MachineAnswer{.instance = ids.empty() ? "?" : ids.front()};
}

}  // namespace pscloud

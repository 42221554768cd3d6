#include "launch/cloud/cloud_sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>
#include <tuple>

#include "base/check.h"
#include "base/text.h"
#include "launch/cloud/cloud_plan.h"
#include "launch/cloud/patience.h"

namespace pscloud {
namespace {

using std::chrono::steady_clock;

constexpr const char* kInstances = "instances";
constexpr std::chrono::seconds kAfterTrouble{20};

struct ThingKind {
  const char* name;
  const char* words;
  const char* list;
  const char* set;
  const char* id;
  const char* remove;
  const char* parameter;            // of one; "InstanceId.": of many in a call, with numbers
  std::vector<std::string> states;  // that count as being there; empty: all
};

// Machines first: nothing that they use can go before them.
const std::vector<ThingKind>& thing_kinds() {
  static const std::vector<ThingKind> kinds = {
      {kInstances,
       "machine",
       "DescribeInstances",
       "reservationSet",
       "instanceId",
       "TerminateInstances",
       "InstanceId.",
       {"pending", "running", "stopping", "stopped", "shutting-down"}},
      {"spot_requests",
       "spot request",
       "DescribeSpotInstanceRequests",
       "spotInstanceRequestSet",
       "spotInstanceRequestId",
       "CancelSpotInstanceRequests",
       "SpotInstanceRequestId.",
       {"open", "active"}},
      {"placement_group",
       "placement group",
       "DescribePlacementGroups",
       "placementGroupSet",
       "groupName",
       "DeletePlacementGroup",
       "GroupName",
       {"pending", "available"}},
      {"security_group",
       "security group",
       "DescribeSecurityGroups",
       "securityGroupInfo",
       "groupId",
       "DeleteSecurityGroup",
       "GroupId",
       {}},
      {"subnet", "subnet", "DescribeSubnets", "subnetSet", "subnetId", "DeleteSubnet", "SubnetId", {}},
      {"key_pair", "key pair", "DescribeKeyPairs", "keySet", "keyName", "DeleteKeyPair", "KeyName", {}},
  };
  return kinds;
}

const ThingKind& kind_called(const std::string& name) {
  const auto found = std::ranges::find_if(thing_kinds(), [&](const ThingKind& each) { return name == each.name; });
  CHECK(found != thing_kinds().end());
  return *found;
}

std::string tag_of(const XmlElement& item, std::string_view name) {
  const XmlElement* set = item.child("tagSet");
  if (set == nullptr) return "";
  for (const XmlElement& tag : set->children) {
    if (tag.text_of("key") == name) return tag.text_of("value");
  }
  return "";
}

bool is_there(const ThingKind& kind, const std::string& state) {
  return kind.states.empty() || state.empty() || std::ranges::find(kind.states, state) != kind.states.end();
}

// Machines are listed by the call that made them.
Result<std::vector<XmlElement>> list_items(AwsApi& api, const ThingKind& kind, const Ec2Form& which) {
  std::vector<XmlElement> items = TRY(api.list(kind.list, kind.set, which));
  if (kind.name != std::string_view(kInstances)) return items;
  std::vector<XmlElement> machines;
  for (XmlElement& reservation : items) {
    for (XmlElement& child : reservation.children) {
      if (child.name != "instancesSet") continue;
      std::ranges::move(child.children, std::back_inserter(machines));
    }
  }
  return machines;
}

std::string state_of(const XmlElement& item) {
  const XmlElement* state = item.child("instanceState");
  return state == nullptr ? item.text_of("state") : state->text_of("name");
}

Ec2Form of_cluster(const std::string& cloud_id) { return Ec2Form().filter(std::string("tag:") + kIdTag, {cloud_id}); }

// As they are looked at while they are removed.
struct FoundThing {
  std::string id;
  bool ends = false;  // it was asked to, and need not be asked again
};
Result<std::vector<FoundThing>> find_things(AwsApi& api, const ThingKind& kind, const std::string& cloud_id) {
  std::vector<FoundThing> found;
  if (kind.name == std::string_view(kInstances)) {
    for (const Ec2Instance& each : TRY(list_instances(api, cloud_id))) {
      if (is_there(kind, each.state)) found.push_back({each.id, each.state == "shutting-down"});
    }
    return found;
  }
  for (const XmlElement& item : TRY(list_items(api, kind, of_cluster(cloud_id)))) {
    if (is_there(kind, state_of(item))) found.push_back({item.text_of(kind.id)});
  }
  return found;
}

bool takes_many(const ThingKind& kind) { return std::string_view(kind.parameter).ends_with('.'); }

Result<Ec2Answer> ask_to_remove(AwsApi& api, const ThingKind& kind, std::span<const std::string> ids) {
  Ec2Form form;
  for (size_t i = 0; i < ids.size(); ++i) {
    form.set(takes_many(kind) ? fmt::format("{}{}", kind.parameter, i + 1) : kind.parameter, ids[i]);
  }
  return api.ask(kind.remove, form);
}

// Refusals that pass: something else must go first, and does.
bool is_in_use(const std::string& code) {
  return code == "DependencyViolation" || code == "InvalidGroup.InUse" || code == "InvalidPlacementGroup.InUse" ||
         code == "IncorrectInstanceState";
}
bool is_gone(const std::string& code) {
  return code.ends_with(".NotFound") || code == "InvalidPlacementGroup.Unknown" || code == "InvalidKeyPair.NotFound";
}

}  // namespace

Result<std::vector<Ec2Instance>> list_instances(AwsApi& api, const std::string& cloud_id) {
  std::vector<Ec2Instance> instances;
  for (const XmlElement& item : TRY(list_items(api, kind_called(kInstances), of_cluster(cloud_id)))) {
    Ec2Instance instance{.id = item.text_of("instanceId"),
                         .state = state_of(item),
                         .reason = "",
                         .role = tag_of(item, kRoleTag),
                         .private_address = item.text_of("privateIpAddress"),
                         .public_address = item.text_of("ipAddress"),
                         .interface = "",
                         .spot = item.text_of("instanceLifecycle") == "spot"};
    if (const XmlElement* reason = item.child("stateReason")) instance.reason = reason->text_of("message");
    if (const XmlElement* interfaces = item.child("networkInterfaceSet");
        interfaces != nullptr && !interfaces->children.empty()) {
      instance.interface = interfaces->children.front().text_of("networkInterfaceId");
    }
    parse_number(item.text_of("amiLaunchIndex"), 0, 1 << 20, instance.launch_index);
    instances.push_back(std::move(instance));
  }
  std::ranges::sort(instances, {},
                    [](const Ec2Instance& each) { return std::tie(each.role, each.launch_index, each.id); });
  return instances;
}

std::vector<std::string> cloud_kinds() {
  std::vector<std::string> names;
  for (const ThingKind& kind : thing_kinds()) names.emplace_back(kind.name);
  return names;
}

Result<std::vector<std::string>> list_things(AwsApi& api, const std::string& kind_name, const std::string& cloud_id) {
  std::vector<std::string> ids;
  for (FoundThing& each : TRY(find_things(api, kind_called(kind_name), cloud_id))) ids.push_back(std::move(each.id));
  return ids;
}

Result<std::vector<TaggedThing>> list_account(AwsApi& api) {
  std::vector<TaggedThing> things;
  for (const ThingKind& kind : thing_kinds()) {
    for (const XmlElement& item : TRY(list_items(api, kind, Ec2Form().filter("tag-key", {kIdTag})))) {
      if (!is_there(kind, state_of(item))) continue;
      things.push_back({.kind = kind.name,
                        .cloud_id = tag_of(item, kIdTag),
                        .cluster = tag_of(item, kClusterTag),
                        .owner = tag_of(item, kOwnerTag)});
    }
  }
  return things;
}

Result<> sweep_things(AwsApi& api, const std::string& kind_name, const std::string& cloud_id,
                      steady_clock::time_point quiet_until, const SweepOptions& options) {
  const ThingKind& kind = kind_called(kind_name);
  std::vector<std::string> ids;        // as they were seen last
  std::vector<std::string> to_remove;  // those of them that do not end yet
  size_t told = 0;
  bool told_trouble = false;
  Patience patience(steady_clock::now() + options.timeout, options.cancelled);
  while (true) {
    std::string why;
    bool in_trouble = false;       // EC2 is, and that passes
    std::optional<Error> refused;  // for good
    const auto listed = find_things(api, kind, cloud_id);
    if (listed) {
      ids.clear();
      to_remove.clear();
      for (const FoundThing& each : *listed) {
        if (each.id == options.spared) continue;
        ids.push_back(each.id);
        if (!each.ends) to_remove.push_back(each.id);
      }
      if (ids.empty() && steady_clock::now() >= quiet_until) {
        if (told > 0) options.say(fmt::format("{}s: all gone", kind.words));
        return {};
      }
    } else {
      if (!may_pass(listed.error())) return listed.error();
      in_trouble = true;
      why = listed.error().message;
    }
    if (ids.size() != told && !ids.empty()) {
      options.say(
          fmt::format("{} {}{} end{}", ids.size(), kind.words, ids.size() == 1 ? "" : "s", ids.size() == 1 ? "s" : ""));
      told = ids.size();
    }
    // False if several were refused together, of which it may concern one.
    const auto remove = [&](std::span<const std::string> some) {
      const auto answer = ask_to_remove(api, kind, some);
      if (answer && answer->refused.empty()) return true;
      const Error& error = answer ? answer->error : answer.error();
      if (may_pass(error)) {
        in_trouble = true;
        why = error.message;
      } else if (some.size() > 1) {
        return false;
      } else if (answer && is_in_use(answer->refused)) {
        why = error.message;
      } else if (!answer || !is_gone(answer->refused)) {
        refused = error;  // the others are tried all the same
      }
      return true;
    };
    if (!takes_many(kind) || to_remove.size() < 2 || !remove(to_remove)) {
      for (const std::string& id : to_remove) remove({&id, 1});
    }
    if (refused) return *refused;
    if (patience.is_over() && (!listed || !ids.empty())) {
      const std::string what = ids.empty() ? fmt::format("it is not known whether a {} is still there", kind.words)
                                           : fmt::format("{} {} is still there", kind.words, fmt::join(ids, ", "));
      return Error{in_trouble ? Code::kUnavailable : Code::kTimeout,
                   fmt::format("{}{}{}", what, why.empty() ? "" : ": ", why)};
    }
    if (in_trouble && !told_trouble) options.say(fmt::format("{}s: {}; it is tried again", kind.words, why));
    told_trouble = told_trouble || in_trouble;
    TRY(patience.pause());
  }
}

std::vector<std::string> sweep_kinds(AwsApi& api, const std::vector<std::string>& kinds, const std::string& cloud_id,
                                     SweepOptions options) {
  std::vector<std::string> left;
  for (const std::string& kind : kinds) {
    const auto swept = sweep_things(api, kind, cloud_id, options.quiet_until, options);
    if (!swept) left.push_back(fmt::format("{}: {}", kind, swept.error().message));
    hurry_after(swept, options);
  }
  return left;
}

void hurry_after(const Result<>& swept, SweepOptions& options) {
  if (!swept && swept.error().code == Code::kUnavailable) options.timeout = std::min(options.timeout, kAfterTrouble);
}

}  // namespace pscloud

#include "launch/cloud/cloud_sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
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
constexpr std::chrono::seconds kShortestCall{3};
constexpr std::chrono::seconds kLongestCall{60};

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
  bool is_there = true;  // or EC2 still tells of it though it is gone
  bool ends = false;     // it was asked to, and need not be asked again
};
Result<std::vector<FoundThing>> find_things(AwsApi& api, const ThingKind& kind, const std::string& cloud_id) {
  std::vector<FoundThing> found;
  if (kind.name == std::string_view(kInstances)) {
    for (const Ec2Instance& each : TRY(list_instances(api, cloud_id))) {
      found.push_back({each.id, is_there(kind, each.state), each.state == "shutting-down"});
    }
    return found;
  }
  for (const XmlElement& item : TRY(list_items(api, kind, of_cluster(cloud_id)))) {
    found.push_back({item.text_of(kind.id), is_there(kind, state_of(item))});
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

// Removes the things of one kind.
class Sweep {
 public:
  Sweep(AwsApi& api, const ThingKind& kind, const std::string& cloud_id, steady_clock::time_point quiet_until,
        const SweepOptions& options)
      : api_(api), kind_(kind), cloud_id_(cloud_id), quiet_until_(quiet_until), options_(options) {
    if (const auto known = options.known.find(kind.name); known != options.known.end()) {
      pending_.insert(known->second.begin(), known->second.end());
    }
    pending_.erase(options.spared);
  }

  Result<> run() {
    Patience patience(steady_clock::now() + options_.timeout, options_.cancelled);
    while (true) {
      why_.clear();
      in_trouble_ = false;
      is_quiet_ = steady_clock::now() >= quiet_until_;
      const bool listed = TRY(look());
      std::vector<std::string> unlisted;
      std::ranges::set_difference(pending_, std::set(ids_.begin(), ids_.end()), std::back_inserter(unlisted));
      const auto removed = remove_all(to_remove_, true);
      TRY(remove_all(unlisted, false));
      TRY(removed);
      const bool may_be_there = !ids_.empty() || !pending_.empty();
      if (listed && is_quiet_ && !may_be_there) {
        if (told_ > 0) options_.say(fmt::format("{}s: all gone", kind_.words));
        return {};
      }
      if (patience.is_over() && (!listed || !ids_.empty() || (is_quiet_ && may_be_there))) return still_there();
      if (in_trouble_ && !told_trouble_) options_.say(fmt::format("{}s: {}; it is tried again", kind_.words, why_));
      told_trouble_ = told_trouble_ || in_trouble_;
      TRY(patience.pause());
    }
  }

 private:
  // What EC2 tells of now; false if it does not, and that passes.
  Result<bool> look() {
    const auto found = find_things(api_, kind_, cloud_id_);
    if (!found) {
      if (!may_pass(found.error())) return found.error();
      in_trouble_ = true;
      why_ = found.error().message;
      return false;
    }
    ids_.clear();
    to_remove_.clear();
    for (const FoundThing& each : *found) {
      if (!each.is_there || each.ends) pending_.erase(each.id);
      if (!each.is_there || each.id == options_.spared) continue;
      ids_.push_back(each.id);
      if (!each.ends) to_remove_.push_back(each.id);
    }
    if (ids_.size() != told_ && !ids_.empty()) {
      options_.say(fmt::format("{} {}{} end{}", ids_.size(), kind_.words, ids_.size() == 1 ? "" : "s",
                               ids_.size() == 1 ? "s" : ""));
      told_ = ids_.size();
    }
    return true;
  }

  // An error is a refusal for good; the others are tried all the same.
  Result<> remove_all(const std::vector<std::string>& some, bool listed) {
    std::optional<Error> refused;
    if (!takes_many(kind_) || some.size() < 2 || !remove(some, listed, refused)) {
      for (const std::string& id : some) remove({&id, 1}, listed, refused);
    }
    if (refused) return *refused;
    return {};
  }

  // False if several were refused together, of which it may concern one.
  bool remove(std::span<const std::string> some, bool listed, std::optional<Error>& refused) {
    const auto answer = ask_to_remove(api_, kind_, some);
    const bool done = answer && answer->refused.empty();
    if (!done) {
      const Error& error = answer ? answer->error : answer.error();
      if (may_pass(error)) {
        in_trouble_ = true;
        why_ = error.message;
        return true;
      }
      if (some.size() > 1) return false;
      if (answer && is_in_use(answer->refused)) {
        why_ = error.message;
        return true;
      }
      // What does not exist has no tag either, by which the keys are allowed to remove it: of what is not listed a
      // denial says no more than that it is not known.
      if (!answer || (listed && !is_gone(answer->refused))) {
        refused = error;
        return true;
      }
    }
    // Of what is not listed an answer counts only when EC2 must know it: one that removes a key says "done" anyway.
    if (listed ? done : is_quiet_) {
      for (const std::string& id : some) pending_.erase(id);
    }
    return true;
  }

  Error still_there() const {
    std::set<std::string> left(ids_.begin(), ids_.end());
    left.insert(pending_.begin(), pending_.end());
    const std::string what = left.empty() ? fmt::format("it is not known whether a {} is still there", kind_.words)
                                          : fmt::format("{} {} is still there", kind_.words, fmt::join(left, ", "));
    return {in_trouble_ ? Code::kUnavailable : Code::kTimeout,
            fmt::format("{}{}{}", what, why_.empty() ? "" : ": ", why_)};
  }

  AwsApi& api_;
  const ThingKind& kind_;
  const std::string& cloud_id_;
  const steady_clock::time_point quiet_until_;
  const SweepOptions& options_;
  std::vector<std::string> ids_;        // as they were seen last
  std::vector<std::string> to_remove_;  // those of them that do not end yet
  std::set<std::string> pending_;       // of those that are known, the ones that may not be gone
  bool is_quiet_ = false;               // what was made is listed by now, if it is there
  std::string why_;                     // something is still there, as far as that was said in this round
  bool in_trouble_ = false;             // EC2 is, and that passes
  size_t told_ = 0;
  bool told_trouble_ = false;
};

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
                         .token = item.text_of("clientToken"),
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
  for (FoundThing& each : TRY(find_things(api, kind_called(kind_name), cloud_id))) {
    if (each.is_there) ids.push_back(std::move(each.id));
  }
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
  return Sweep(api, kind_called(kind_name), cloud_id, quiet_until, options).run();
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

std::chrono::milliseconds call_timeout(std::chrono::seconds timeout) {
  return std::clamp(timeout, kShortestCall, kLongestCall);
}

}  // namespace pscloud

#include "launch/cloud/cloud_up.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/base64.h"
#include "base/clock.h"
#include "launch/cloud/aws_api.h"
#include "launch/cloud/cloud_controller.h"
#include "launch/cloud/cloud_down.h"
#include "launch/cloud/cloud_prices.h"
#include "launch/cloud/cloud_survey.h"
#include "launch/cloud/cloud_swarm.h"
#include "launch/cloud/cloud_sweep.h"
#include "launch/cloud/machine_order.h"
#include "launch/cloud/machine_wait.h"
#include "launch/cloud/patience.h"
#include "launch/cloud/user_data.h"
#include "launch/ledger.h"

namespace pscloud {
namespace {

using std::chrono::steady_clock;

constexpr size_t kConsoleTail = 1500;
constexpr int kSubnetTries = 10;

class BringUp {
 public:
  BringUp(RunFolder& folder, CloudState& state, AwsApi& api, Ledger& ledger, const BringUpOptions& options)
      : folder_(folder), state_(state), plan_(state.plan), api_(api), ledger_(ledger), options_(options) {}

  Result<> run() {
    for (const CloudPlan::Group& group : plan_.groups) data_[group.role] = TRY(user_data(plan_, group.role));
    subnet_ = plan_.subnet;
    if (subnet_.empty()) TRY(make_subnet());
    TRY(make_security_group());
    TRY(import_key());
    if (plan_.placement) TRY(make_placement_group());
    TRY(make_machines());
    TRY(folder_.write("state.json", cloud_state_json(state_)));
    TRY(wait_until_ready());
    TRY(introduce_controller(folder_, state_));
    if (plan_.swarm) {
      const auto deadline = steady_clock::now() + options_.timeout;
      TRY(make_cloud_swarm(folder_, state_, {options_.say, options_.cancelled, deadline}));
    }
    state_.step = "up";
    TRY(folder_.write("state.json", cloud_state_json(state_)));
    return folder_.write("cluster.json", cluster_json(cluster_of(folder_, state_)) + "\n");
  }

 private:
  TextPairs tags(std::string_view role) const { return cloud_tags(plan_, role); }

  // Makes a thing that stands in the ledger. EC2 has no token against making these twice: a call whose answer was lost
  // is repeated, and the second finds the name or the addresses taken, by the first. So what is refused as a duplicate
  // is looked for by our tag, and is ours if it is found.
  Result<std::string> make(const std::string& kind, const std::string& action, const Ec2Form& form,
                           const std::function<std::string(const XmlElement&)>& id_of) {
    const uint64_t entry = TRY(intend_thing(ledger_, kind, cloud_name(plan_)));
    const Ec2Answer answer = TRY(api_.ask(action, form));
    refused_ = answer.refused;
    std::string id;
    if (answer.refused.empty()) {
      id = id_of(answer.body);
    } else {
      const bool is_there = answer.refused.ends_with(".Duplicate") || answer.refused.ends_with(".Conflict");
      if (is_there) {
        const std::vector<std::string> found = TRY(list_things(api_, kind, plan_.id));
        if (!found.empty()) id = found.front();
      }
      if (id.empty()) {
        // A refusal is sure: there is none. An answer that says that something went wrong within is not; nor is one
        // that says that it is there, because what was just made may not be listed yet.
        if (answer.error.code != Code::kUnavailable && !is_there) TRY(ledger_.gone(entry));
        return answer.error;
      }
    }
    TRY(learned_things(ledger_, entry, {id}));
    return id;
  }

  Result<> make_subnet() {
    for (int tries = 1;; ++tries) {
      Ec2Form form;
      form.set("VpcId", plan_.vpc).set("CidrBlock", plan_.subnet_cidr).set("AvailabilityZone", plan_.zone);
      const auto made =
          make("subnet", "CreateSubnet", form.tags({"subnet"}, tags("subnet")), [](const XmlElement& body) {
            const XmlElement* subnet = body.child("subnet");
            return subnet == nullptr ? "" : subnet->text_of("subnetId");
          });
      if (made) {
        subnet_ = *made;
        break;
      }
      // Somebody else has taken these addresses since they were found to be free.
      if (refused_ != "InvalidSubnet.Conflict" || tries == kSubnetTries) return made.error();
      state_.plan.subnet_cidr = TRY(free_subnet(api_, plan_));
    }
    options_.say(fmt::format("subnet {} ({})", subnet_, plan_.subnet_cidr));
    return wait_until("the subnet is available", [&]() -> Result<bool> {
      const auto found = TRY(api_.list("DescribeSubnets", "subnetSet", Ec2Form().filter("subnet-id", {subnet_})));
      return !found.empty() && found.front().text_of("state") == "available";
    });
  }

  Result<> make_security_group() {
    Ec2Form form;
    form.set("GroupName", cloud_name(plan_)).set("VpcId", plan_.vpc);
    form.set("GroupDescription", fmt::format("pscloud cluster {}", plan_.name));
    group_ = TRY(make("security_group", "CreateSecurityGroup", form.tags({"security-group"}, tags("group")),
                      [](const XmlElement& body) { return body.text_of("groupId"); }));
    Ec2Form rules;
    rules.set("GroupId", group_);
    rules.set("IpPermissions.1.IpProtocol", "tcp").set("IpPermissions.1.FromPort", "22");
    rules.set("IpPermissions.1.ToPort", "22").set("IpPermissions.1.IpRanges.1.CidrIp", plan_.ssh_from);
    rules.set("IpPermissions.2.IpProtocol", "-1").set("IpPermissions.2.Groups.1.GroupId", group_);
    const Ec2Answer answer =
        TRY(api_.ask_of_new("AuthorizeSecurityGroupIngress", rules,
                            [&](const std::string& refused) { return says_unknown_thing(plan_, refused); }));
    if (!answer.refused.empty() && answer.refused != "InvalidPermission.Duplicate") return answer.error;
    options_.say(fmt::format("security group {}: ssh from {}", group_, plan_.ssh_from));
    return {};
  }

  Result<> import_key() {
    const std::string key = TRY(folder_.read("id.pub"));
    Ec2Form form;
    form.set("KeyName", cloud_name(plan_)).set("PublicKeyMaterial", base64(key));
    const std::string id = TRY(make("key_pair", "ImportKeyPair", form.tags({"key-pair"}, tags("key")),
                                    [](const XmlElement& body) { return body.text_of("keyName"); }));
    options_.say(fmt::format("key pair {}", id));
    return {};
  }

  Result<> make_placement_group() {
    Ec2Form form;
    form.set("GroupName", cloud_name(plan_)).set("Strategy", "cluster");
    TRY(make("placement_group", "CreatePlacementGroup", form.tags({"placement-group"}, tags("placement")),
             [&](const XmlElement&) { return cloud_name(plan_); }));
    options_.say("placement group " + cloud_name(plan_));
    return {};
  }

  Result<> run_instances(const CloudPlan::Group& group) {
    const MachineAnswer answer =
        TRY(order_machines(api_, ledger_, plan_, group,
                           {.subnet = subnet_,
                            .security_group = group_,
                            .user_data = data_.at(group.role),
                            .token = fmt::format("pscloud-{}-{}-{}", plan_.id, group.role, plan_.zone)}));
    no_capacity_ = answer.no_capacity;
    if (answer.instance.empty()) return answer.error;
    options_.say(fmt::format("{} {} {} asked for", group.count, group.type, group.spot ? "spot machines" : "machines"));
    return {};
  }

  // In the first of the plan's zones that has all of them.
  Result<> make_machines() {
    std::vector<std::string> tried;
    while (true) {
      auto made = [&]() -> Result<> {
        for (const CloudPlan::Group& group : plan_.groups) TRY(run_instances(group));
        return wait_until_running();
      }();
      if (made || !no_capacity_) return made;
      tried.push_back(plan_.zone);
      if (plan_.other_zones.empty()) {
        return unavailable("{}{}: try another --zone or --instance", made.error().message,
                           tried.size() > 1 ? fmt::format(" (tried: {})", fmt::join(tried, ", ")) : "");
      }
      options_.say(fmt::format("{}; it is made in {} instead", made.error().message, plan_.other_zones.front()));
      TRY(change_zone());
    }
  }

  // Group and key are good for all zones. Machines and the subnet are not, so they go, and are made again.
  Result<> change_zone() {
    const std::vector<std::string> known = known_ids(ledger_.remaining())["instances"];
    given_up_.insert(known.begin(), known.end());
    for (const char* kind : {"instances", "spot_requests", "subnet"}) {
      TRY(sweep_ledger(api_, ledger_, kind, plan_.id, options_.settle,
                       {.say = options_.say, .cancelled = options_.cancelled, .timeout = options_.timeout}));
    }
    for (const Ec2Instance& each : TRY(list_instances(api_, plan_.id))) given_up_.insert(each.id);
    state_.plan.zone = plan_.other_zones.front();
    state_.plan.other_zones.erase(state_.plan.other_zones.begin());
    for (CloudPlan::Group& group : state_.plan.groups) {
      if (group.spot) group.price = ask_price(api_, group.type, true, plan_.zone);  // each zone has its own
    }
    TRY(folder_.write("state.json", cloud_state_json(state_)));
    return make_subnet();
  }

  // EC2 may not know for a moment what it has just made, so one look proves little; and its state is asked for.
  Result<> wait_until(std::string_view what, const std::function<Result<bool>()>& holds) {
    Patience patience(steady_clock::now() + options_.timeout, options_.cancelled);
    while (!TRY(holds())) {
      if (patience.is_over()) {
        return timed_out("waited {} s, and it is not so that {}", options_.timeout.count(), what);
      }
      TRY(patience.pause());
    }
    return {};
  }

  Result<> wait_until_running() {
    std::map<std::string, std::string> told;
    return wait_until("all machines run", [&]() -> Result<bool> {
      std::map<std::string, int> numbers;  // by role
      std::vector<CloudMachine> machines;
      for (const Ec2Instance& each : TRY(list_instances(api_, plan_.id))) {
        if (given_up_.contains(each.id)) continue;
        const std::string name = fmt::format("{}-{}", each.role, numbers[each.role]++);
        if (told[name] != each.state) options_.say(fmt::format("{} {}: {}", name, each.id, each.state));
        told[name] = each.state;
        if (each.state != "pending" && each.state != "running") {
          no_capacity_ = says_no_capacity(each.reason);
          return job_failed("{} ({}) is {}: {}", name, each.id, each.state,
                            each.reason.empty() ? "EC2 does not say why" : each.reason);
        }
        const bool reachable =
            !each.private_address.empty() && (plan_.private_addresses || !each.public_address.empty());
        if (each.state != "running" || !reachable) continue;
        machines.push_back({.name = name,
                            .role = each.role,
                            .instance = each.id,
                            .private_address = each.private_address,
                            .public_address = each.public_address,
                            .spot = each.spot});
      }
      if (machines.size() < static_cast<size_t>(plan_.machines())) return false;
      state_.machines = std::move(machines);
      return true;
    });
  }

  Result<> wait_until_ready() {
    std::vector<Host> hosts;
    for (const CloudMachine& machine : state_.machines) hosts.push_back(host_of_machine(folder_, state_, machine));
    return wait_for_machines(hosts, {.ssh_config = folder_.path("ssh_config"),
                                     .say = options_.say,
                                     .cancelled = options_.cancelled,
                                     .deadline = steady_clock::now() + options_.timeout,
                                     .idle = std::chrono::seconds(plan_.idle_s),
                                     .console = [this](const Host& host) { return console_tail(host.name); }});
  }

  // What a machine that nobody reaches has written to its console, if EC2 has it.
  std::string console_tail(const std::string& name) {
    const auto machine = std::ranges::find(state_.machines, name, &CloudMachine::name);
    const auto body = api_.call("GetConsoleOutput", Ec2Form().set("InstanceId", machine->instance));
    const auto text = body ? parse_base64(body->text_of("output")) : std::nullopt;
    if (!text || text->empty()) return "";
    return fmt::format("\n  the end of the console of {}:\n{}", name,
                       text->substr(text->size() - std::min(text->size(), kConsoleTail)));
  }

  RunFolder& folder_;
  CloudState& state_;
  const CloudPlan& plan_;
  AwsApi& api_;
  Ledger& ledger_;
  const BringUpOptions& options_;
  std::string subnet_;
  std::string group_;
  std::map<std::string, std::string> data_;  // for the first boot, by role
  std::string refused_;                      // the code of the last that was to be made
  bool no_capacity_ = false;                 // is why the last try has failed
  std::set<std::string> given_up_;           // machines in zones that had not all
};

Error undo(RunFolder& folder, Error why, const BringUpOptions& options) {
  options.say(fmt::format("removes what was made; if this is ended too, `pscloud cluster down {}` removes the rest",
                          folder.name()));
  // Without asking whether to go on: who has interrupted wants nothing to stay.
  const auto left = take_down(folder, {.say = options.say,
                                       .cancelled = {},
                                       .timeout = options.timeout,
                                       .settle = options.settle,
                                       .environment = options.environment});
  const std::string& name = folder.name();
  if (!left) {
    why.message += fmt::format("; what was made could not be removed ({}): `pscloud cluster down {}` tries again",
                               left.error().message, name);
  } else if (!left->empty()) {
    why.message += fmt::format("; left: {}: `pscloud cluster down {}` tries again", fmt::join(*left, "; "), name);
  } else {
    why.message += "; nothing was left";
  }
  return why;
}

}  // namespace

Result<CloudState> bring_up(const CloudPlan& plan, const BringUpOptions& options) {
  CloudState state{.plan = plan, .step = "making", .made_unix = unix_seconds_now(), .machines = {}};
  AwsApi api = TRY(AwsApi::open({.environment = options.environment,
                                 .cancelled = options.cancelled,
                                 .region = plan.region,
                                 .endpoint = plan.endpoint,
                                 .call_timeout = call_timeout(options.timeout)}));
  RunFolder folder = TRY(create_cloud_folder(state));
  const auto made = [&]() -> Result<> {
    Ledger ledger = TRY(Ledger::open(folder.path("ledger.jsonl")));
    if (!plan.setup.empty()) TRY(folder.write(kSetupFile, plan.setup));  // for machines that come later
    return BringUp(folder, state, api, ledger, options).run();
  }();
  if (!made) return undo(folder, made.error(), options);
  return state;
}

}  // namespace pscloud

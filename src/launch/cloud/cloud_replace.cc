#include "launch/cloud/cloud_replace.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <optional>

#include "base/random.h"
#include "base/text.h"
#include "launch/cloud/cloud_controller.h"
#include "launch/cloud/cloud_folder.h"
#include "launch/cloud/cloud_prices.h"
#include "launch/cloud/cloud_swarm.h"
#include "launch/cloud/cloud_sweep.h"
#include "launch/cloud/machine_order.h"
#include "launch/cloud/machine_wait.h"
#include "launch/cloud/patience.h"
#include "launch/cloud/user_data.h"
#include "launch/host/ssh_connection.h"
#include "launch/swarm/machine_image.h"

namespace pscloud {
namespace {

using std::chrono::steady_clock;

constexpr std::chrono::seconds kToLock{60};
constexpr std::chrono::seconds kToEndOne{60};
constexpr std::chrono::seconds kToGiveUp{20};  // a job that is over waits for it

std::string next_name(const CloudState& state, const std::string& role) {
  int next = 0;
  for (const CloudMachine& machine : state.machines) {
    int number = 0;
    const size_t dash = machine.name.rfind('-');
    if (machine.role == role && parse_number(machine.name.substr(dash + 1), 0, 1 << 20, number)) {
      next = std::max(next, number + 1);
    }
  }
  return fmt::format("{}-{}", role, next);
}

class Replacement {
 public:
  Replacement(std::string cluster, std::string lost, const ReplaceOptions& options)
      : cluster_(std::move(cluster)),
        lost_(std::move(lost)),
        options_(options),
        deadline_(steady_clock::now() + options.timeout) {}

  Result<Host> run() {
    auto host = [&]() -> Result<Host> {
      TRY(find_or_order());
      return get_ready();
    }();
    if (!host && is_ours_) abandon();
    if (!token_.empty()) end_unheard();  // another run may have been faster, too
    return host;
  }

 private:
  // For a moment: who brings the cluster down waits for it, or is waited for.
  Result<RunFolder> lock_cluster(const std::function<bool()>& cancelled) const {
    RunFolder folder = TRY(open_cloud_folder(cluster_));
    Patience patience(steady_clock::now() + kToLock, cancelled);
    while (true) {
      auto locked = folder.lock();
      if (locked) return folder;
      if (patience.is_over()) return locked.error();
      TRY(patience.pause());
    }
  }

  Result<CloudState> read_up(const RunFolder& folder) const {
    CloudState state = TRY(read_cloud_state(folder));
    if (state.step != "up") return unavailable("the cluster '{}' is being taken down", cluster_);
    return state;
  }

  Result<> find_or_order() {
    while (true) {
      const MachineAnswer answer = TRY(try_order());
      if (!machine_.instance.empty()) return {};
      const auto next = steady_clock::now() + options_.ask_again_after;
      if (!may_pass(answer.error) || next >= deadline_) return answer.error;
      bool& said = answer.no_capacity ? said_no_capacity_ : said_trouble_;
      if (!said) options_.say(answer.error.message + "; it is asked for again and again");
      said = true;
      Patience patience(next, options_.cancelled);
      while (!patience.is_over()) TRY(patience.pause());
    }
  }

  // An error is for good; what may pass is in the answer.
  Result<MachineAnswer> try_order() {
    const RunFolder folder = TRY(lock_cluster(options_.cancelled));
    CloudState state = TRY(read_up(folder));
    // Another run may have been faster.
    const auto made = std::ranges::find(state.machines, lost_, &CloudMachine::instead_of);
    if (made != state.machines.end()) {
      machine_ = *made;
      plan_ = state.plan;
      return MachineAnswer{.instance = made->instance};
    }
    const CloudMachine lost = TRY(find_machine(state, lost_));
    plan_ = state.plan;
    if (::access(folder.path(kSetupFile).c_str(), F_OK) == 0) plan_.setup = TRY(folder.read(kSetupFile));
    AwsApi api = TRY(open_api(options_.cancelled));
    auto answer = order(api, folder, state, lost);
    if (!answer && may_pass(answer.error())) return MachineAnswer{.instance = "", .error = answer.error()};
    return answer;
  }

  Result<MachineAnswer> order(AwsApi& api, const RunFolder& folder, CloudState& state, const CloudMachine& lost) {
    const auto group = std::ranges::find(plan_.groups, lost.role, &CloudPlan::Group::role);
    if (group == plan_.groups.end()) return corrupt("the plan of '{}' has no {}", cluster_, lost.role);
    Ledger ledger = TRY(Ledger::open(folder.path("ledger.jsonl")));
    // EC2 gives the new machine the key of the cluster, which a controller has not.
    const std::string login = state.inside ? TRY(controller_login(state, TRY(folder.read("id.pub")))) : "";
    MachineOrder order{.subnet = plan_.subnet,
                       .security_group = TRY(own_thing(api, "security_group")),
                       .user_data = TRY(user_data(plan_, lost.role, login)),
                       .token = ""};
    if (order.subnet.empty()) order.subnet = TRY(own_thing(api, "subnet"));
    MachineGroup one = *group;
    one.count = 1;
    if (token_.empty()) {
      token_ = fmt::format("pscloud-{}-{}-{}-{}", plan_.id, lost.instance, mark_, ++orders_);
      on_demand_ = false;
    }
    // Unless EC2 has surely refused it, the same is asked for again, so that there is one machine for it at most.
    const auto ask = [&]() -> Result<MachineAnswer> {
      one.spot = group->spot && !on_demand_;
      order.token = token_;
      MachineAnswer answer = TRY(order_machines(api, ledger, plan_, one, order));
      if (!answer.instance.empty() || answer.no_capacity || !may_pass(answer.error)) token_.clear();
      return answer;
    };
    MachineAnswer answer = TRY(ask());
    if (answer.no_capacity && one.spot && plan_.on_demand_fallback) {
      options_.say(answer.error.message + "; one on demand is asked for");
      on_demand_ = true;
      token_ = order.token + "d";
      answer = TRY(ask());
    }
    if (answer.instance.empty()) return answer;
    is_ours_ = true;
    machine_ = {.name = next_name(state, lost.role),
                .role = lost.role,
                .instance = answer.instance,
                .private_address = "",
                .public_address = "",
                .spot = one.spot,
                .instead_of = lost_,
                .dollars_per_hour = {}};
    if (one.spot != group->spot) {
      machine_.dollars_per_hour = ask_price(api, one.type, one.spot, plan_.zone).dollars;
    }
    options_.say(fmt::format("{} {}: a {} {} is asked for in the place of {}", machine_.name, machine_.instance,
                             one.type, one.spot ? "spot machine" : "machine on demand", lost_));
    state.machines.push_back(machine_);
    TRY(folder.write("state.json", cloud_state_json(state)));
    return answer;
  }

  Result<AwsApi> open_api(std::function<bool()> cancelled) const {
    return AwsApi::open({.environment = options_.environment,
                         .cancelled = std::move(cancelled),
                         .region = plan_.region,
                         .endpoint = plan_.endpoint});
  }

  Result<std::string> own_thing(AwsApi& api, const std::string& kind) const {
    const std::vector<std::string> found = TRY(list_things(api, kind, plan_.id));
    if (found.empty()) return not_found("the cluster '{}' has lost its {}", cluster_, kind);
    return found.front();
  }

  Result<Host> get_ready() {
    TRY(wait_until_running());
    const RunFolder folder = TRY(open_cloud_folder(cluster_));
    const CloudState state = TRY(read_cloud_state(folder));
    const Host host = host_of_machine(folder, state, machine_);
    if (is_ours_) TRY(forget_host_key(folder, host.address));  // it may have been that of the lost one
    const std::string ssh_config = folder.path("ssh_config");
    TRY(wait_for_machines({host}, {.ssh_config = ssh_config,
                                   .say = options_.say,
                                   .cancelled = options_.cancelled,
                                   .deadline = deadline_,
                                   .idle = std::chrono::seconds(plan_.idle_s)}));
    // What tasks need is brought there here, where nobody waits for it, and not by the launcher's own thread.
    if (plan_.swarm) {
      TRY(join_cloud_swarm(folder, state, machine_, {options_.say, options_.cancelled, deadline_}));
      TRY(load_own_image({host}, ssh_config, TRY(own_image_name())));
    } else {
      TRY(bring_program(host, ssh_config));
    }
    TRY(enter());
    return host;
  }

  Result<> bring_program(const Host& host, const std::string& ssh_config) const {
    SshOptions ssh;
    ssh.config_file = ssh_config;
    AgentHosts agents;
    const auto wrong = TRY(open_agents({host}, ssh, agents, deadline_));
    if (!wrong.empty()) return unavailable("{}: {}", host.name, wrong.begin()->second);
    agents.end(steady_clock::now() + kToEndOne);
    return {};
  }

  Result<> wait_until_running() {
    AwsApi api = TRY(open_api(options_.cancelled));
    Patience patience(deadline_, options_.cancelled);
    while (true) {
      const auto instances = list_instances(api, plan_.id);
      if (!instances && !may_pass(instances.error())) return instances.error();
      for (const Ec2Instance& each : instances ? *instances : std::vector<Ec2Instance>()) {
        if (each.id != machine_.instance) continue;
        if (each.state != "pending" && each.state != "running") {
          return job_failed("{} ({}) is {}: {}", machine_.name, each.id, each.state,
                            each.reason.empty() ? "EC2 does not say why" : each.reason);
        }
        machine_.private_address = each.private_address;
        machine_.public_address = each.public_address;
        const bool reachable =
            !each.private_address.empty() && (plan_.private_addresses || !each.public_address.empty());
        if (each.state == "running" && reachable) return {};
      }
      if (patience.is_over()) return timed_out("{} ({}) does not run in time", machine_.name, machine_.instance);
      TRY(patience.pause());
    }
  }

  // It stands in the place of the other from now on.
  Result<> enter() {
    const RunFolder folder = TRY(lock_cluster(options_.cancelled));
    CloudState state = TRY(read_up(folder));
    const auto own = std::ranges::find(state.machines, machine_.name, &CloudMachine::name);
    if (own == state.machines.end()) return unavailable("{} was ended before it was ready", machine_.name);
    *own = machine_;
    std::erase_if(state.machines, [&](const CloudMachine& each) { return each.name == lost_; });
    TRY(folder.write("state.json", cloud_state_json(state)));
    return folder.write("cluster.json", cluster_json(cluster_of(folder, state)) + "\n");
  }

  // Whatever goes wrong here, `cluster down` finds it by its tag.
  void abandon() {
    const auto until = steady_clock::now() + kToGiveUp;
    if (auto api = open_hasty_api(until)) end_machine(*api, machine_.instance, until);
    const auto folder = lock_cluster({});
    if (!folder) return;
    auto state = read_cloud_state(*folder);
    if (!state) return;
    std::erase_if(state->machines, [&](const CloudMachine& each) { return each.name == machine_.name; });
    (void)folder->write("state.json", cloud_state_json(*state));
  }

  // EC2 has not said what became of the last order: a machine that it has made all the same is found by the token.
  void end_unheard() {
    const auto until = steady_clock::now() + kToGiveUp;
    auto api = open_hasty_api(until);
    Patience patience(until, {});
    while (api && !patience.is_over()) {
      const auto instances = list_instances(*api, plan_.id);
      for (const Ec2Instance& each : instances ? *instances : std::vector<Ec2Instance>()) {
        if (each.token == token_) return end_machine(*api, each.id, until);
      }
      (void)patience.pause();
    }
    options_.say(
        fmt::format("it is not known whether EC2 has made a machine in the place of {}: one would end itself "
                    "after {}, or by `pscloud cluster down {}`",
                    lost_, duration_text(plan_.idle_s), cluster_));
  }

  Result<AwsApi> open_hasty_api(steady_clock::time_point until) const {
    return open_api([until] { return steady_clock::now() >= until; });
  }

  // EC2 may not know yet what it has just made.
  static void end_machine(AwsApi& api, const std::string& id, steady_clock::time_point until) {
    Patience patience(until, {});
    while (!patience.is_over()) {
      const auto answer = api.ask("TerminateInstances", Ec2Form().set("InstanceId.1", id));
      const Error& error = answer ? answer->error : answer.error();
      const bool may_help = may_pass(error) || (answer && answer->refused.ends_with(".NotFound"));
      if ((answer && answer->refused.empty()) || !may_help) return;
      (void)patience.pause();
    }
  }

  const std::string cluster_;
  const std::string lost_;
  const ReplaceOptions& options_;
  const steady_clock::time_point deadline_;
  CloudPlan plan_;
  CloudMachine machine_;
  bool is_ours_ = false;  // it was asked for here
  bool said_no_capacity_ = false;
  bool said_trouble_ = false;
  std::string token_;       // of an order of which it is not known what became; empty: there is none
  bool on_demand_ = false;  // it was for such a machine
  // By a token that was used EC2 gives the machine of then, though that was given up and ended; 64 characters at most.
  const std::string mark_ = fmt::format("{:08x}", Random::from_system().next() >> 32);
  int orders_ = 0;
};

}  // namespace

Result<Host> replace_machine(const std::string& cluster, const std::string& lost, const ReplaceOptions& options) {
  return Replacement(cluster, lost, options).run();
}

}  // namespace pscloud

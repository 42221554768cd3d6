#include "launch/cloud/cloud_swarm.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/mutex.h"
#include "launch/cloud/machine_wait.h"
#include "launch/cloud/patience.h"
#include "launch/swarm/swarm_forming.h"
#include "launch/swarm/swarm_machines.h"

namespace pscloud {
namespace {

class CloudSwarm {
 public:
  CloudSwarm(const RunFolder& folder, const CloudState& state, const CloudSwarmOptions& options)
      : state_(state), options_(options), ssh_config_(folder.path("ssh_config")) {
    for (const CloudMachine& machine : state.machines) {
      if (machine.role != kControllerRole) hosts_.push_back(host_of_machine(folder, state, machine));
    }
  }

  Result<> make() { return join({hosts_.begin() + 1, hosts_.end()}); }

  // The first is its manager already, or becomes it.
  Result<> join(const std::vector<Host>& others) {
    const std::vector<Host> first(hosts_.begin(), hosts_.begin() + 1);
    TRY(each(first, [&](const Host& machine, DockerEngine& engine, Patience& patience) -> Result<> {
      FoundedSwarm swarm = TRY(found_swarm(engine, address_of(machine), patience));
      token_ = std::move(swarm.token);
      has_joined(machine, swarm.node, "manages the swarm");
      return {};
    }));
    TRY(each(others, [&](const Host& machine, DockerEngine& engine, Patience& patience) -> Result<> {
      const std::string node =
          TRY(join_swarm(engine, address_of(machine), address_of(hosts_.front()), token_, patience));
      has_joined(machine, node, "has joined the swarm");
      return {};
    }));
    return each(first, [&](const Host&, DockerEngine& engine, Patience& patience) {
      const auto ready = [&](const std::string& node) { say(names_[node], "is ready in the swarm"); };
      return label_nodes(engine, labels(), ready, patience);
    });
  }

 private:
  using Act = std::function<Result<>(const Host&, DockerEngine&, Patience&)>;

  Result<> each(const std::vector<Host>& machines, const Act& act) {
    const auto act_or_tell = [&](const Host& machine, DockerEngine& engine) -> Result<> {
      Patience patience(options_.deadline, options_.cancelled);
      auto done = act(machine, engine, patience);
      const bool given_up = options_.cancelled && options_.cancelled();
      if (!done && !given_up) done.error().message += machine_log_tail(machine, ssh_config_);
      return done;
    };
    return on_each_engine(machines, ssh_config_, act_or_tell, options_.cancelled);
  }

  // By which the other machines reach it.
  static const std::string& address_of(const Host& machine) { return machine.interface; }

  void has_joined(const Host& machine, const std::string& node, std::string_view what) {
    {
      MutexLock lock(mutex_);
      names_[node] = machine.name;
    }
    say(machine.name, what);
  }

  void say(std::string_view name, std::string_view what) {
    MutexLock lock(mutex_);
    options_.say(fmt::format("{} {}", name, what));
  }

  // Of each node.
  std::map<std::string, Variables> labels() const {
    std::map<std::string, Variables> labels;
    for (const auto& [node, name] : names_) {
      const auto machine = std::ranges::find(state_.machines, name, &CloudMachine::name);
      labels[node] = {{kSwarmMachineLabel, name}, {kSwarmRoleLabel, machine->role}};
    }
    return labels;
  }

  const CloudState& state_;
  const CloudSwarmOptions& options_;
  const std::string ssh_config_;
  std::vector<Host> hosts_;
  std::string token_;
  Mutex mutex_;                               // of what several threads touch while machines join:
  std::map<std::string, std::string> names_;  // of machines, by node
};

}  // namespace

Result<> make_cloud_swarm(const RunFolder& folder, const CloudState& state, const CloudSwarmOptions& options) {
  return CloudSwarm(folder, state, options).make();
}

Result<> join_cloud_swarm(const RunFolder& folder, const CloudState& state, const CloudMachine& machine,
                          const CloudSwarmOptions& options) {
  return CloudSwarm(folder, state, options).join({host_of_machine(folder, state, machine)});
}

}  // namespace pscloud

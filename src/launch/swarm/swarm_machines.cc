#include "launch/swarm/swarm_machines.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <thread>

#include "base/text.h"
#include "launch/backend.h"
#include "launch/cloud/machine_keeper.h"
#include "launch/host/ssh_connection.h"
#include "launch/swarm/ssh_dial.h"

namespace pscloud {
namespace {

constexpr size_t kEnginesAtOnce = 32;

SshOptions ssh_by(const std::string& config) {
  SshOptions options;
  options.config_file = config;
  return options;
}

}  // namespace

const Host* SwarmMachines::find(std::string_view name) const {
  const auto found = std::ranges::find(hosts, name, &Host::name);
  return found == hosts.end() ? nullptr : &*found;
}

Result<SwarmMachines> read_swarm_machines(const Cluster& cluster) {
  SwarmMachines machines;
  machines.hosts = cluster.hosts;
  machines.manager = option_of(cluster, "manager");
  machines.ssh_config = option_of(cluster, "ssh_config");
  if (!machines.known() && machines.manager.empty()) return machines;
  if (!option_of(cluster, "host").empty()) return invalid("of swarm:host and swarm:manager there can be one only");
  if (machines.find(machines.manager) == nullptr) {
    return invalid("swarm:manager={}: it is the name of one of the hosts of the cluster file", machines.manager);
  }
  TRY(idle_of(cluster));
  return machines;
}

EngineAddress engine_of_machine(const Host& machine, const std::string& ssh_config) {
  EngineAddress engine;
  engine.text = fmt::format("ssh://{}{}{}", machine.user, machine.user.empty() ? "" : "@", machine.address);
  engine.url = "http://docker";
  engine.http.tries = 4;
  engine.http.proxy = false;
  engine.http.peer = "the Docker engine of " + machine.name;
  engine.http.carry = dial_by(ssh_command(machine, ssh_by(ssh_config), true));
  return engine;
}

Result<> on_each_engine(const std::vector<Host>& machines, const std::string& ssh_config,
                        const std::function<Result<>(const Host& machine, DockerEngine& engine)>& act,
                        const std::function<bool()>& cancelled) {
  std::vector<Result<>> results(machines.size());
  std::atomic<size_t> next = 0;
  std::vector<std::jthread> threads;
  for (size_t i = 0; i < std::min(machines.size(), kEnginesAtOnce); ++i) {
    threads.emplace_back([&] {
      // The logins of an engine end with the thread that made them, so it is made and used here.
      for (size_t at = next++; at < machines.size(); at = next++) {
        EngineAddress address = engine_of_machine(machines[at], ssh_config);
        address.http.cancelled = cancelled;
        DockerEngine engine(std::move(address));
        results[at] = act(machines[at], engine);
      }
    });
  }
  threads.clear();
  for (size_t i = 0; i < machines.size(); ++i) TRY(std::move(results[i]).at(machines[i].name));
  return {};
}

Result<std::vector<std::string>> machine_shell(const Host& machine, const std::string& ssh_config,
                                               const std::string& container) {
  const auto fits = [](unsigned char c) { return std::isalnum(c) != 0; };
  if (container.empty() || !std::ranges::all_of(container, fits)) {
    return corrupt("'{}' is no id of a container", escape_controls(container));  // a shell would read it
  }
  std::vector<std::string> words = ssh_command(machine, ssh_by(ssh_config), false);
  words.insert(words.begin() + 1, "-t");
  words.push_back(
      fmt::format("if docker exec {0} sh -c : >/dev/null 2>&1; then exec docker exec -it {0} sh; fi; "
                  "echo 'the image has no shell: this is the machine {1}, and the container is {0:.12}'; "
                  "exec \"$SHELL\" -l",
                  container, machine.name));
  return words;
}

}  // namespace pscloud

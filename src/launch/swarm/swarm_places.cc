#include "launch/swarm/swarm_places.h"

#include <fmt/format.h>

#include <set>

#include "base/random.h"

namespace pscloud {
namespace {

constexpr uint16_t kHostPortLow = 20000;  // below those that Linux gives out by itself
constexpr uint16_t kHostPortHigh = 32767;
constexpr int kRefusalsMax = 20;  // of ports that were free a moment ago: there is something else wrong then

struct UsableNode {
  std::string id;
  std::string address;
};

Result<std::vector<UsableNode>> nodes_for(DockerEngine& engine, const Plan& plan, const SwarmOptions& options) {
  const JsonValue nodes = TRY(engine.get("/nodes"));
  std::vector<UsableNode> usable;
  std::map<std::string, size_t> by_name;
  for (const JsonValue& node : nodes.items()) {
    if (node["Status"]["State"].text() != "ready" || node["Spec"]["Availability"].text() != "active") continue;
    by_name[name_of_node(node)] = usable.size();
    usable.push_back({node["ID"].text(), node["Status"]["Addr"].text()});
  }
  if (usable.empty()) return unavailable("no node of the swarm is ready and active");
  std::vector<UsableNode> chosen;
  for (size_t i = 0; i < plan.tasks.size(); ++i) {
    size_t at = i % usable.size();
    if (options.machines.known()) {
      const auto machine = by_name.find(plan.tasks[i].host);
      if (machine == by_name.end()) {
        return unavailable("{} is not ready in the swarm: `docker node ls` on {} tells more", plan.tasks[i].host,
                           options.machines.manager);
      }
      at = machine->second;
    }
    chosen.push_back(usable[at]);
  }
  return chosen;
}

// Names of configs are unique in a swarm: of two jobs that want a port at one moment one is refused. It is there until
// its job is cleaned up.
Result<> take_port(DockerEngine& engine, const Plan& plan, uint16_t port) {
  const std::string name = swarm_port_name(std::to_string(port));
  const JsonValue made = TRY(engine.post("/configs/create", swarm_data_json(plan, name, plan.job, port)));
  const std::string& owner = made["Spec"]["Labels"][kSwarmJobLabel].text();  // told if a first answer was lost
  if (!owner.empty() && owner != plan.job) return invalid("another job has the port {}", port);
  return {};
}

}  // namespace

std::string name_of_node(const JsonValue& node) {
  const std::string& machine = node["Spec"]["Labels"][kSwarmMachineLabel].text();
  return machine.empty() ? node["Description"]["Hostname"].text() : machine;
}

Result<std::map<std::string, SwarmPlace>> find_places(DockerEngine& engine, const Plan& plan,
                                                      const SwarmOptions& options, const std::string& network) {
  std::map<std::string, SwarmPlace> places;
  if (!options.host_network) {
    for (const PlannedTask& task : plan.tasks) {
      places[task.spec.id.text()] = {network, "", {task.spec.id.text(), options.port}};
    }
    return places;
  }
  const std::vector<UsableNode> nodes = TRY(nodes_for(engine, plan, options));
  const JsonValue configs = TRY(engine.get("/configs", {{"filters", engine_filter("label", kSwarmPortLabel)}}));
  std::set<std::string> taken;
  for (const JsonValue& config : configs.items()) taken.insert(config["Spec"]["Labels"][kSwarmPortLabel].text());
  const int range = kHostPortHigh - kHostPortLow + 1;
  int next = static_cast<int>(Random::from_system().below(static_cast<uint64_t>(range)));
  int refusals = 0;
  size_t i = 0;
  for (int tried = 0; i < plan.tasks.size(); ++tried) {
    if (tried == range) return unavailable("no port from {} to {} is free", kHostPortLow, kHostPortHigh);
    const auto port = static_cast<uint16_t>(kHostPortLow + next++ % range);
    if (taken.contains(std::to_string(port))) continue;
    if (const auto took = take_port(engine, plan, port); !took) {
      if (took.error().code != Code::kInvalid || ++refusals > kRefusalsMax) return took.error();
      continue;
    }
    places[plan.tasks[i].spec.id.text()] = {"host", nodes[i].id, {nodes[i].address, port}};
    ++i;
  }
  return places;
}

}  // namespace pscloud

#include "launch/swarm/swarm_places.h"

#include <fmt/format.h>

#include <set>

#include "base/random.h"

namespace pscloud {
namespace {

constexpr uint16_t kHostPortLow = 20000;  // below those that Linux gives out by itself
constexpr uint16_t kHostPortHigh = 32767;

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
  const JsonValue services = TRY(engine.get("/services", {{"filters", engine_filter("label", kSwarmPortLabel)}}));
  std::set<std::string> taken;
  for (const JsonValue& service : services.items()) taken.insert(service["Spec"]["Labels"][kSwarmPortLabel].text());
  const int range = kHostPortHigh - kHostPortLow + 1;
  int next = static_cast<int>(Random::from_system().below(static_cast<uint64_t>(range)));
  int tried = 0;
  for (size_t i = 0; i < plan.tasks.size(); ++i) {
    uint16_t port = 0;
    do {
      if (++tried > range) return unavailable("no port from {} to {} is free", kHostPortLow, kHostPortHigh);
      port = static_cast<uint16_t>(kHostPortLow + next++ % range);
    } while (taken.contains(std::to_string(port)));
    places[plan.tasks[i].spec.id.text()] = {"host", nodes[i].id, {nodes[i].address, port}};
  }
  return places;
}

}  // namespace pscloud

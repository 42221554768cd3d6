#include "launch/swarm/swarm_forming.h"

#include <fmt/format.h>

#include "base/json.h"

namespace pscloud {
namespace {

constexpr int kSwarmPort = 2377;

std::string with_port(const std::string& address) { return fmt::format("{}:{}", address, kSwarmPort); }

// The beginning of what an engine is asked: where it listens, and what the others call it.
JsonWriter own_addresses(const std::string& address) {
  JsonWriter json;
  json.begin_object().field("ListenAddr", with_port(address)).field("AdvertiseAddr", address);
  return json;
}

// An engine may be about to start, or go on joining after it has said that this took too long; so its state is what
// counts, not the answer. Only what can never succeed ends it early. The id of its node.
Result<std::string> enter_swarm(DockerEngine& engine, const std::string& path, const std::string& body,
                                Patience& patience) {
  std::string why;
  while (true) {
    const auto info = engine.get("/info");
    if (info) {
      const JsonValue& swarm = (*info)["Swarm"];
      const std::string& state = swarm["LocalNodeState"].text();
      if (state == "active" && !swarm["NodeID"].text().empty()) return swarm["NodeID"].text();
      if (!swarm["Error"].text().empty()) why = swarm["Error"].text();
      if (state != "pending") {
        const auto entered = engine.post(path, body);
        if (!entered && entered.error().code == Code::kInvalid) return entered.error();
        if (!entered) why = entered.error().message;
      }
    } else {
      why = info.error().message;
    }
    if (patience.is_over()) return timed_out("it is not in the swarm: {}", why);
    TRY(patience.pause());
  }
}

Result<> label_node(DockerEngine& manager, const JsonValue& node, const Variables& labels) {
  JsonWriter json;
  json.begin_object().field("Role", node["Spec"]["Role"].text());
  json.field("Availability", node["Spec"]["Availability"].text()).key("Labels").begin_object();
  for (const auto& [name, value] : labels) json.field(name, value);
  json.end_object().end_object();
  const std::string version = fmt::to_string(node["Version"]["Index"].integer());
  TRY(manager.post(fmt::format("/nodes/{}/update", node["ID"].text()), json.text(), {{"version", version}}));
  return {};
}

}  // namespace

Result<FoundedSwarm> found_swarm(DockerEngine& engine, const std::string& address, Patience& patience) {
  FoundedSwarm swarm;
  swarm.node = TRY(enter_swarm(engine, "/swarm/init", own_addresses(address).end_object().text(), patience));
  swarm.token = TRY(engine.get("/swarm"))["JoinTokens"]["Worker"].text();
  if (swarm.token.empty()) return unavailable("the engine is in a swarm, and not as its manager");
  return swarm;
}

Result<std::string> join_swarm(DockerEngine& engine, const std::string& address, const std::string& manager,
                               const std::string& token, Patience& patience) {
  JsonWriter json = own_addresses(address);
  json.key("RemoteAddrs").begin_array().value(with_port(manager)).end_array().field("JoinToken", token).end_object();
  return enter_swarm(engine, "/swarm/join", json.text(), patience);
}

Result<> label_nodes(DockerEngine& manager, std::map<std::string, Variables> labels, const NodeReady& ready,
                     Patience& patience) {
  while (true) {
    std::string why = "the manager does not know them";
    const auto nodes = manager.get("/nodes");
    if (!nodes) {
      why = nodes.error().message;
    } else {
      for (const JsonValue& node : nodes->items()) {
        const auto wanted = labels.find(node["ID"].text());
        if (wanted == labels.end()) continue;
        const std::string& state = node["Status"]["State"].text();
        // Refused if the node has changed since it was looked at: then it is looked at again.
        const auto labelled = state == "ready" ? label_node(manager, node, wanted->second)
                                               : Result<>(unavailable("one of them is {}", state));
        if (!labelled) {
          why = labelled.error().message;
          continue;
        }
        ready(wanted->first);
        labels.erase(wanted);
      }
    }
    if (labels.empty()) return {};
    if (patience.is_over()) return timed_out("{} nodes are not ready in the swarm: {}", labels.size(), why);
    TRY(patience.pause());
  }
}

}  // namespace pscloud

#include "launch/swarm/node_signals.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "launch/swarm/engine_call.h"
#include "launch/swarm/swarm_log.h"

namespace pscloud {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kToTry{30000};  // a node may ask a registry first
constexpr milliseconds kToSend{2000};
constexpr milliseconds kToWait{1000};  // of a signal, for a node that is still tried
constexpr uint64_t kAnswerMax = 1 << 20;
constexpr std::string_view kImageIds = "sha256:";

}  // namespace

void NodeSignals::meet(const std::string& id, const std::string& container, const std::string& image, Time now) {
  if (nodes_.contains(id)) return;
  Node& node = nodes_[id];
  node.image = image;
  // A list, since it does not tell the container's variables: {"id":["CONTAINER"]}.
  const std::string request = fmt::format("GET /containers/json?filters=%7B%22id%22%3A%5B%22{}%22%5D%7D", container);
  if (const auto called = call(id, node, {request}, now + kToTry); !called) give_up(node, called.error().message);
}

bool NodeSignals::send(TaskId task, const std::string& id, const std::string& container, std::string_view signal,
                       Time now) {
  const auto node = nodes_.find(id);
  if (node == nodes_.end() || node->second.state == State::kBad || container.empty()) return false;
  node->second.waiting.push_back({task, fmt::format("POST /containers/{}/kill?signal={}", container, signal), now});
  return true;
}

void NodeSignals::begin(Time now) {
  for (auto& [id, node] : nodes_) {
    if (node.waiting.empty()) continue;
    if (node.state == State::kTried) {
      if (now >= node.waiting.front().asked + kToWait) give_up(node, "it takes too long");
      continue;
    }
    if (!node.service.empty()) continue;
    node.sent = std::exchange(node.waiting, {});
    std::vector<std::string> requests;
    for (const Signal& signal : node.sent) requests.push_back(signal.request);
    if (const auto called = call(id, node, requests, now + kToSend); !called) give_up(node, called.error().message);
  }
}

void NodeSignals::look(const JsonValue& states, Time now) {
  for (auto& [id, node] : nodes_) {
    if (node.service.empty()) continue;
    const auto state = std::ranges::find_if(
        states.items(), [&](const JsonValue& each) { return each["ServiceID"].text() == node.service; });
    const bool known = state != states.items().end();
    const std::string word = known ? (*state)["Status"]["State"].text() : "";
    if (is_over(word)) {
      end_call(node, word == "complete" ? "" : word + ": " + (*state)["Status"]["Err"].text());
    } else if (now >= node.deadline) {
      end_call(node, "it takes too long");
    }
  }
}

// `trouble` is empty if it has gone well.
void NodeSignals::end_call(Node& node, std::string_view trouble) {
  if (!trouble.empty()) return give_up(node, trouble);
  if (node.state == State::kTried) {
    auto image = read_image(node.service);
    if (!image) return give_up(node, image.error().message);
    node.image = *std::move(image);
    node.state = State::kGood;
  }
  node.sent.clear();
  const std::string service = std::exchange(node.service, {});
  // What fails here is found by clean().
  if (const auto removed = engine_.remove("/services/" + service); !removed) log_debug("{}", removed.error().message);
}

// The answer's body is a line of its own behind the headers.
Result<std::string> NodeSignals::read_image(const std::string& service) {
  const std::string bytes = TRY(
      engine_.get_bytes(fmt::format("/services/{}/logs", service), {{"stdout", "1"}, {"timestamps", "1"}}, kAnswerMax));
  std::vector<TaskEvent> lines;
  TRY(SwarmLog(TaskId()).take(bytes, lines));
  for (const TaskEvent& line : lines) {
    if (!line.text.starts_with('[')) continue;
    const JsonValue containers = TRY(JsonValue::parse(line.text));
    if (containers.items().empty()) break;
    const std::string& image = containers.items().front()["ImageID"].text();
    if (image.starts_with(kImageIds)) return image;
  }
  return not_found("its engine does not tell the image");
}

Result<> NodeSignals::call(const std::string& id, Node& node, const std::vector<std::string>& requests, Time deadline) {
  if (program_.id.empty()) {
    program_ = {"", swarm_name(plan_, "engine-call"), "/pscloud-engine-call"};
    const std::string config = swarm_data_json(plan_, program_.name, engine_calls().front().bytes);
    program_.id = TRY(engine_.post("/configs/create", config))["ID"].text();
    if (program_.id.empty()) return corrupt("a config without an id");
  }
  const std::string spec =
      swarm_call_json(plan_, fmt::format("call-{}", ++calls_), id, node.image, program_, socket_, requests);
  node.service = TRY(engine_.post("/services/create", spec))["ID"].text();
  if (node.service.empty()) return corrupt("a service without an id");
  node.deadline = deadline;
  return {};
}

void NodeSignals::give_up(Node& node, std::string_view why) {
  log_debug("signals take the way of the swarm: {}", why);
  node.state = State::kBad;
  for (std::vector<Signal>* signals : {&node.sent, &node.waiting}) {
    for (const Signal& signal : *signals) failed_.push_back(signal.task);
    signals->clear();
  }
  if (node.service.empty()) return;
  const std::string service = std::exchange(node.service, {});
  if (const auto removed = engine_.remove("/services/" + service); !removed) log_debug("{}", removed.error().message);
}

std::vector<TaskId> NodeSignals::take_failed() { return std::exchange(failed_, {}); }

}  // namespace pscloud

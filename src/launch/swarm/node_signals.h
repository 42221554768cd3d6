#pragma once

#include <chrono>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "launch/plan.h"
#include "launch/swarm/docker_engine.h"
#include "launch/swarm/swarm_spec.h"

namespace pscloud {

// Signals for containers on nodes whose engines we do not speak to. A swarm that ends a task waits three seconds before
// SIGTERM, whatever it is asked for: one until its agent looks again, two for load balancers. So
// a task of our own goes to the node for a moment, which takes half a second: engine_call.cc, that comes as a config
// and runs in the image of the job's task there, asks the engine by its socket. Its services and the config are the
// job's as all others are, and go with them. Nothing of the image itself runs in it. One thread.
class NodeSignals {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // `engine` and `plan` are borrowed. `socket` is that of engines on their nodes.
  NodeSignals(DockerEngine& engine, const Plan& plan, std::string socket)
      : engine_(engine), plan_(plan), socket_(std::move(socket)) {}

  // The container runs there, of this image. The first time a node is heard of, whether its engine can be asked is
  // tried, and by which id it knows the image: for one of a name it would ask the registry, for seconds.
  void meet(const std::string& node, const std::string& container, const std::string& image, Time now);

  // Soon. False: it cannot be sent there. take_failed() tells if that turns out later.
  bool send(TaskId task, const std::string& node, const std::string& container, std::string_view signal, Time now);

  // Begins what is asked for.
  void begin(Time now);
  // What has come of it: `states` are those of the job's tasks, as the engine lists them.
  void look(const JsonValue& states, Time now);
  // Who has not got a signal, each once.
  std::vector<TaskId> take_failed();

 private:
  struct Signal {
    TaskId task;
    std::string request;
    Time asked;
  };
  enum class State : uint8_t { kTried, kGood, kBad };
  struct Node {
    State state = State::kTried;
    std::string image = {};    // an id, once it is kGood
    std::string service = {};  // of the call that is under way; empty: none is
    Time deadline = {};        // of that
    std::vector<Signal> sent = {};
    std::vector<Signal> waiting = {};
  };

  Result<> call(const std::string& id, Node& node, const std::vector<std::string>& requests, Time deadline);
  void end_call(Node& node, std::string_view word);
  Result<std::string> read_image(const std::string& service);
  void give_up(Node& node, std::string_view why);

  DockerEngine& engine_;
  const Plan& plan_;
  const std::string socket_;
  SwarmFile program_;  // a config, once it is needed
  int calls_ = 0;
  std::map<std::string, Node> nodes_;  // by id
  std::vector<TaskId> failed_;
};

}  // namespace pscloud

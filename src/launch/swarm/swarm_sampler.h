#pragma once

#include <map>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "launch/backend.h"
#include "launch/swarm/docker_engine.h"

namespace pscloud {

// Asks the engines of nodes every two seconds what the containers of tasks use (container_figures.h). An engine tells
// of its own containers only, so there is a thread for each node: one that does not answer holds up no other. The
// threads end with this. One thread calls it.
class SwarmSampler {
 public:
  SwarmSampler() = default;
  ~SwarmSampler();
  SwarmSampler(const SwarmSampler&) = delete;
  SwarmSampler& operator=(const SwarmSampler&) = delete;

  // The container runs on this node, whose engine is there. Beyond kNodesMax nodes it is not looked at.
  void watch(TaskId task, const std::string& container, const std::string& node, const EngineAddress& engine);
  void forget(TaskId task);

  // What was measured since the last call: events of the kind kSample.
  std::vector<TaskEvent> take();

  static constexpr size_t kNodesMax = 64;

 private:
  struct Watched {
    std::string container;
    std::string node;
  };

  void run(const std::string& node, EngineAddress address) EXCLUDES(mutex_);

  Mutex mutex_;
  CondVar changed_;
  bool ending_ GUARDED_BY(mutex_) = false;
  std::map<TaskId, Watched> watched_ GUARDED_BY(mutex_);
  std::map<TaskId, Figures> measured_ GUARDED_BY(mutex_);  // the newest of each
  std::map<std::string, std::jthread> threads_;            // by node; last: they use the others
};

}  // namespace pscloud

#pragma once

#include <poll.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "launch/agent/node_figures.h"
#include "launch/backend.h"

namespace pscloud {

// Asks the nodes of ours that a task runs, if it runs any, how they are: GET /status at each unix socket in a folder of
// the task's, which nobody else can enter. Does not block. One thread.
class NodeProbe {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // The folder need not be there.
  explicit NodeProbe(std::string folder) : folder_(std::move(folder)) {}

  // Asks all that are there, unless they are being asked.
  void ask(Time now);
  bool is_asking() const { return !open_.empty(); }
  // What to wait for.
  void add_to(std::vector<pollfd>& polled) const;
  Time deadline() const { return deadline_; }

  // Once all have answered or have had their time: what they said.
  struct Look {
    Figures figures;
    std::string status;
  };
  std::optional<Look> work(Time now);

 private:
  struct Question {
    Fd socket;
    std::string answer;
  };

  const std::string folder_;
  std::vector<Question> open_;
  std::vector<std::string> answers_;  // whole ones, as HTTP
  Time deadline_;
  NodeFigures figures_;
};

}  // namespace pscloud

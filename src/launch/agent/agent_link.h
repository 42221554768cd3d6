#pragma once

#include <poll.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "launch/backend.h"
#include "launch/task.h"

namespace pscloud {

// What a launcher wants of an agent.
struct LauncherWord {
  enum class Kind : uint8_t {
    kStart,  // run `spec`: lease a port, say kArrived, wait for the view
    kView,   // the others are there: begin the programs of all tasks that are in `view` and have not begun
    kStop,   // end `task`
    kGone,   // there is no launcher any more, `why` (empty: the link's owner tells it): end everything. The last word
  };
  Kind kind = Kind::kGone;
  TaskSpec spec = {};
  ClusterView view = {};
  TaskId task = {};
  bool at_once = false;
  std::string why = {};
};

// The agent's side of the way between an agent (agent.h) and its launcher: a stream (stream_link.h), or files in a
// folder that both see (folder_link.h). Nothing here blocks: the agent has programs to look after. One thread.
class AgentLink {
 public:
  using Time = std::chrono::steady_clock::time_point;

  virtual ~AgentLink() = default;

  // Tells the launcher what happened to a task: kArrived, kRunning, kLine, kNotice, kExited, kLost or kSample. Kept if
  // it cannot go at once. A link that is broken forgets it: next() says kGone.
  virtual void say(const TaskEvent& event) = 0;

  // What the launcher wants, in order, each once; none if there is nothing now.
  virtual std::optional<LauncherWord> next(Time now) = 0;

  // What to wait for before next() is worth calling again: descriptors (any number), and a moment.
  virtual void add_to(std::vector<pollfd>& polled) const = 0;
  virtual Time ask_again(Time now) const = 0;

  // How often what is measured of tasks, and what nodes say of themselves, is worth sending; 0: never.
  struct Looks {
    std::chrono::milliseconds samples{2000};
    std::chrono::milliseconds states{2000};
  };
  virtual Looks looks() const { return {}; }

  // It keeps so much unsent that the programs' lines should stay where they are for now.
  virtual bool is_full() const = 0;

  // Waits until all that was said is with the launcher; false if it is not by `deadline`.
  virtual bool flush(Time deadline) = 0;
};

}  // namespace pscloud

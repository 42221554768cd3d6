#pragma once

#include <poll.h>

#include <chrono>
#include <string>
#include <vector>

#include "launch/backend.h"

namespace pscloud {

// The launcher's side of the links of agents that something else has started, such as a queue: by files
// (folder_watch.h) or by connections that they open (socket_watch.h). Nothing here blocks. One thread.
class TaskWatch {
 public:
  using Now = std::chrono::steady_clock::time_point;

  virtual ~TaskWatch() = default;

  // What has happened since the last look, each task's in order; shows the agents that we live.
  virtual std::vector<TaskEvent> look(Now now) = 0;
  // Look at this moment at the latest, or when a descriptor is ready.
  virtual Now look_again() const = 0;
  virtual void add_to(std::vector<pollfd>& polled) const = 0;

  virtual Result<> release(const ClusterView& view) = 0;
  // One that has not arrived ends as soon as it does.
  virtual Result<> stop(TaskId task, bool at_once) = 0;

  // The cluster says that the task is not there any more, `why`: it is lost unless it has told its end by `deadline`.
  // Of several the one with the earliest deadline counts.
  virtual void presume_lost(TaskId task, const std::string& why, Now deadline) = 0;
};

}  // namespace pscloud

#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "base/fd.h"
#include "launch/cloud/cloud_end.h"
#include "launch/cluster_file.h"
#include "launch/plan.h"

namespace pscloud {

// The launcher of a controller's run, a process of its own: either may be killed, and the other brings the run to its
// end. One thread.
class ControllerLauncher {
 public:
  struct Task {
    const Job& job;
    const Cluster& cluster;
    bool named = false;                        // by the user
    const std::optional<CloudCharge>& charge;  // the cluster that ends with the run
    std::function<void()> put_away;            // what a controller removes at its end; in the launcher, if it is killed
  };
  // What the launcher is given to stop a run before it is made to.
  struct Patience {
    std::chrono::milliseconds grace;
    std::chrono::milliseconds at_once;  // once it was told to be quick; and for its process to end after that
  };

  // Comes back when everything was begun. `out` is the controller's alone: whoever reads it waits for its end. Call it
  // before there is any thread.
  static Result<ControllerLauncher> start(const Task& task, const std::string& runs, Fd& out);
  // A child of this process that looks after that run, for tests.
  ControllerLauncher(std::string runs, std::string run, pid_t pid, Fd line)
      : runs_(std::move(runs)), run_(std::move(run)), pid_(pid), line_(std::move(line)) {}

  const std::string& run() const { return run_; }
  // Who has asked for the run knows of it, and has given the cluster away: a launcher that is left alone takes it down.
  void confirm();
  bool has_ended() const;
  // Whatever has happened to the launcher, nothing is left of the run after this but its folder, and the process is
  // gone. The last thing to be called.
  void end(const Patience& patience);

 private:
  bool wait(std::chrono::milliseconds time) const;

  std::string runs_;
  std::string run_;
  pid_t pid_;
  Fd line_;  // the launcher notices when its other end, this one, is gone
};

}  // namespace pscloud

#pragma once

#include <string>

#include "launch/cluster_file.h"
#include "launch/plan.h"

namespace pscloud {

struct ControllerStart {
  std::string where;   // "local", a host of ssh, or a cluster file with one host
  int linger_s = 600;  // that it answers after the run has ended
  bool named = false;  // the user has chosen the run's name
  bool accept_new_host_keys = false;
  bool json = false;
};

// Brings this program, the job and its files to a machine that stays, and starts a controller there which runs the job
// and looks after it; comes back when it has started. The exit code.
int start_on_controller(const Job& job, const Cluster& cluster, const ControllerStart& options);

}  // namespace pscloud

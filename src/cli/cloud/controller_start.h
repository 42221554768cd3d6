#pragma once

#include <optional>
#include <string>

#include "launch/cloud/cloud_controller.h"
#include "launch/cluster_file.h"
#include "launch/plan.h"

namespace pscloud {

struct ControllerStart {
  std::string where;                          // "local", a host of ssh, or a cluster file with one host
  std::optional<CloudController> cloud = {};  // instead: the controller of a cluster in the cloud
  bool keep_cluster = false;                  // which it takes down else
  std::string logs_to = {};                   // "s3://bucket/logs": where the logs are then
  int linger_s = 600;                         // that it answers after the run has ended
  bool named = false;                         // the user has chosen the run's name
  bool accept_new_host_keys = false;
  bool json = false;
};

// Brings this program, the job and its files to a machine that stays, and starts a controller there which runs the job
// and looks after it; comes back when it has started. The exit code. `cluster` is as that machine sees it.
int start_on_controller(const Job& job, const Cluster& cluster, ControllerStart options);

}  // namespace pscloud

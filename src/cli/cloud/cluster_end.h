#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "launch/agent/keep_alive.h"
#include "launch/cloud/cloud_end.h"

namespace pscloud {

// Takes down the cluster that this controller is in, in two steps, and tells of it in the log of the run's launcher.
class ClusterEnd {
 public:
  // `keep_alive` is for this machine, which must outlive the others.
  ClusterEnd(const CloudCharge& charge, const std::string& run_folder, KeepAlive& keep_alive);

  // Copies what the run has written, its logs and state, to where it shall be when this machine is gone. What cannot be
  // copied is named, and the rest is.
  void save_logs();
  // All machines but this one. What fails is tried again; the machines' own watches end what cannot be ended here.
  void end_others();
  // The rest, and this machine: does not come back if all goes well. If EC2 does not end the machine, it ends itself.
  void end_own();

 private:
  // Those that could not be.
  std::vector<std::string> save(const std::vector<std::string>& names);
  TakeDownOptions options(std::chrono::seconds timeout);
  void say(std::string_view line);

  const CloudCharge& charge_;
  const std::string run_folder_;
  KeepAlive& keep_alive_;
  Fd log_;
};

}  // namespace pscloud

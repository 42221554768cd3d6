#pragma once

#include <optional>
#include <string>

#include "cli/local/worker_process.h"
#include "cli/run/job_flags.h"
#include "cli/run/run_job.h"

namespace CLI {
class App;
}

namespace pscloud {

// Where a verb that learns or scores does so: in this process, in others on this machine, or on a cluster.
struct PlaceFlags {
  WorkerCounts counts{.threads = 0};
  RunJobOptions launch;
  JobFlags job;
  bool as_worker = false;  // of run_worker_processes()

  bool launches() const { return !launch.on.empty(); }
  // The files that a config names are this machine's.
  bool sees_our_files() const {
    return launch.on == "local" && (launch.controller.empty() || launch.controller == "local");
  }
};

// --servers, --workers, --threads, and those of a cluster; `work` is what workers do: "train".
void add_place_flags(CLI::App& verb, PlaceFlags& flags, const std::string& work);

// Fills in what was not given. The exit code if that cannot be; `verb` is whose help tells more.
std::optional<int> settle_place(PlaceFlags& flags, const std::string& verb);

}  // namespace pscloud

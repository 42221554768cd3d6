#pragma once

#include <functional>
#include <string>

#include "launch/launcher.h"
#include "launch/plan.h"

namespace CLI {
class App;
}

namespace pscloud {

// What each verb that starts a job takes.
struct RunJobOptions {
  std::string on;
  std::string usual_name;  // of a job without one; empty: after its command
  bool plan = false;
  bool detach = false;
  bool quiet = false;   // what tasks print goes to their files only
  bool silent = false;  // what happens goes to the launcher's log only
  bool json = false;
  bool accept_new_host_keys = false;
  std::string controller;  // where one shall look after it; empty: this process does
  int linger_s = 600;
  std::string logs_to;        // of a run of a controller in the cloud, when that is gone
  bool keep_cluster = false;  // in the cloud, though its controller looks after the run
  // Called when the run has a folder.
  std::function<void(const std::string& folder)> on_folder = [](const std::string&) {};
  LaunchOptions::Look look = show_all;
  // If set, it hears how the run ended in place of the terminal.
  std::function<void(const Result<LaunchEnd>& end)> on_end = {};
};

// --on, and what goes with it; in that group of the help.
void add_run_job_flags(CLI::App& verb, RunJobOptions& options, const char* group);

// Runs a job to its end, or, detached, until it has started; says on the terminal what happens. The exit code. No
// thread may run yet.
int run_job(Job job, const RunJobOptions& options);

}  // namespace pscloud

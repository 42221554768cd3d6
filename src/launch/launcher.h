#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "launch/backend.h"
#include "launch/machine_search.h"
#include "launch/plan.h"
#include "launch/process/interrupts.h"
#include "launch/run_folder.h"
#include "launch/supervisor.h"
#include "launch/task_logs.h"

namespace pscloud {

inline LineLook show_all(const TaskEvent&) { return LineLook::kNamed; }

struct LaunchOptions {
  // Sees what happens to tasks; for a line it says how that is shown.
  using Look = std::function<LineLook(const TaskEvent& event)>;

  Terminal* terminal = nullptr;  // where lines of tasks are shown; nullptr: nowhere
  Look look = show_all;
  std::function<void(std::string_view text)> say = [](std::string_view) {};  // progress, a line for people
  std::function<void()> started = [] {};                                     // everything was begun
  std::function<void()> leave = [] {};  // this process ends now, for it was interrupted; in any thread
  std::function<std::chrono::steady_clock::time_point()> now = [] { return std::chrono::steady_clock::now(); };
  MakeSupply make_supply = make_machine_supply;  // for machines that are taken away
};

struct LaunchEnd {
  JobOutcome outcome;
  int exit_code = 0;
  std::vector<std::string> last_lines;  // of the task that was the cause
  std::vector<std::string> left;        // what could not be removed, and why
};

// Makes the folder of a new run, with its plan in it. `job.run` is the name wished for, `exact` if the user has chosen
// it himself. kInvalid if the cluster cannot give what the job wants (check_wishes).
struct NewRun {
  RunFolder folder;
  Plan plan;
};
Result<NewRun> new_run(const std::string& runs, const Job& job, const Cluster& cluster, bool exact);

// From the check to the clean-up, all that happens to a run; its folder always tells how far it is, for when this
// process is killed. An error is one of the cluster, or of the disk: by then as much as possible was undone. If it is
// interrupted before anything is made the process ends with 130.
Result<LaunchEnd> launch(const Plan& plan, Backend& backend, RunFolder& folder, const LaunchOptions& options);

// Undoes what a run has left whose launcher was killed. The lines name what could not be removed.
Result<std::vector<std::string>> clean_run(RunFolder& folder);

// A back end for a run that is there already, and its plan.
struct KnownRun {
  Plan plan;
  std::unique_ptr<Backend> backend;
};
Result<KnownRun> open_run(const RunFolder& folder);

}  // namespace pscloud

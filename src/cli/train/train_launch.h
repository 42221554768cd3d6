#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cli/run/job_flags.h"
#include "cli/run/run_job.h"
#include "cli/train/train_job.h"
#include "launch/plan.h"
#include "launch/task_logs.h"

namespace pscloud {

inline constexpr const char* kConfigVariable = "PSCLOUD_CONFIG";  // names the config that a worker of it has

// A job on a cluster that does as a config says: a scheduler, servers, and workers that do these commands, one for
// each. They trust each other by certificates of this job, and get the config, with all that the flags say, as a file.
// Paths in it are as the workers see them.
Result<Job> launch_job(const ConfigFlags& config, const WorkerCounts& counts,
                       std::vector<std::vector<std::string>> commands, const JobFlags& flags);

// How the workers are to report.
struct TrainOutput {
  std::string tensorboard;  // a folder as the first worker sees it; empty: none
  bool quiet = false;
  bool json = false;
};

// The job of `pscloud train --on`: its workers are `pscloud train` themselves.
Result<Job> train_launch_job(const TrainJob& train, const TrainOutput& output, const JobFlags& flags);

// Runs it, and shows what one of the workers says; `json`: that is for programs. The exit code.
int run_launched(Job job, RunJobOptions options, const ConfigFlags& config, bool json);

// Of what all the tasks say, what a person wants to see. Each worker ends with the same table and summary, so one of
// them speaks for all; the rest stays in the logs. One thread.
class TrainVoice {
 public:
  LineLook look(const TaskEvent& event);

 private:
  std::optional<TaskId> speaker_;
  std::set<TaskId> died_;
};

}  // namespace pscloud

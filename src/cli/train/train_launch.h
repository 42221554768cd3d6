#pragma once

#include <optional>
#include <set>
#include <string>

#include "cli/run/job_flags.h"
#include "cli/train/train_job.h"
#include "launch/plan.h"
#include "launch/task_logs.h"

namespace pscloud {

inline constexpr const char* kConfigVariable = "PSCLOUD_CONFIG";  // names the config that a worker of it has

// How the workers are to report.
struct TrainOutput {
  std::string tensorboard;  // a folder as the first worker sees it; empty: none
  bool quiet = false;
  bool json = false;
};

// What `pscloud train --on` has run on a cluster: a scheduler, servers, and workers that are `pscloud train`
// themselves. They trust each other by certificates of this job, and get the config, with all that the flags say, as a
// file. Paths in it are as the workers see them.
Result<Job> train_launch_job(const TrainJob& train, const TrainOutput& output, const JobFlags& flags);

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

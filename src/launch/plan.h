#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "launch/cluster_file.h"
#include "launch/task.h"

namespace pscloud {

// How people call a run: [a-z0-9-], 40 characters at most, begins with a letter.
inline constexpr size_t kRunNameMax = 40;
Result<> check_run_name(std::string_view name);

// What a user wants to run, from flags and files; it does not say where.
struct RoleSpec {
  TaskRole role = TaskRole::kWorker;
  int count = 1;
  std::vector<std::vector<std::string>> commands = {};  // argv of all its tasks, or one for each
  Resources resources = {};
  std::string image = {};  // of a container; empty: none
  uint16_t port = 0;       // that its tasks must have, because their program knows no other; 0: any
  Variables environment = {};
  std::vector<TaskFile> secrets = {};  // beside those of all tasks
};

struct Job {
  std::string run;  // check_run_name
  Framework framework = Framework::kPscloud;
  std::vector<RoleSpec> roles;
  Variables environment;           // of all tasks
  std::vector<TaskFile> secrets;   // of all tasks
  std::vector<std::string> files;  // of this machine, for the folder of each task elsewhere
  int workers_min = 0;             // begin when so many workers are there; 0: all
  bool worker_may_fail = false;    // the rest go on
  bool late_workers = false;       // one that comes while the others are at work can join them
  int arrive_timeout_ms = 300000;
  int stop_grace_ms = 30000;
  int64_t run_timeout_ms = 0;  // 0: as long as it takes
};

struct PlannedTask {
  TaskSpec spec;
  std::string host;  // name of one of the target's; empty: the cluster finds one
  Resources resources;
  std::string image;
  bool ends_job = false;
};

struct Plan {
  std::string job;  // unique
  std::string run;
  std::string target;  // "local", "ssh", "swarm", ...
  Framework framework = Framework::kPscloud;
  std::vector<PlannedTask> tasks;
  std::vector<std::string> files;
  int workers_min = 0;
  bool worker_may_fail = false;
  bool late_workers = false;
  int arrive_timeout_ms = 0;
  int stop_grace_ms = 0;
  int64_t run_timeout_ms = 0;
  double cost_usd_per_hour = 0;  // of the cluster, and of the hosts that have tasks; 0: not known
  bool cost_incomplete = false;  // some of them cost more than that, and nobody knows what

  const PlannedTask* find(TaskId id) const;
};

// Who runs where: each role on the hosts that the cluster has for it, in turn by their slots. `job_id` is the caller's
// chance, so that this is pure. kInvalid says what does not fit, with both numbers.
Result<Plan> make_plan(const Job& job, const Cluster& cluster, const std::string& job_id);

// What it costs with the hosts that its tasks have now: fills in the plan's own figures.
void plan_cost(const Cluster& cluster, Plan& plan);

// "run clicks on local: 2 servers, 4 workers".
std::string plan_summary(const Plan& plan);

// For people (`--plan`) and for the run's folder; secrets are left out of both.
std::string plan_text(const Plan& plan);
std::string plan_json(const Plan& plan);
Result<Plan> parse_plan(std::string_view json);

}  // namespace pscloud

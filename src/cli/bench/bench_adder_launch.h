#pragma once

#include <string>
#include <vector>

#include "cli/bench/bench_adder_job.h"
#include "cli/run/job_flags.h"
#include "cli/run/run_job.h"

namespace pscloud {

// How the adder is to run on a cluster.
struct AdderLaunch {
  RunJobOptions run;
  JobFlags job;
  std::vector<std::string> variants = {"pscloud"};  // of pscloud and adder_peers(), or "all"
  std::string python = "python3";                   // of the machines, for the peers
  bool warmup_given = false;
  bool json = false;
};

// Ours as a job: a scheduler, servers and workers, the latter two `pscloud bench adder --as-task`.
Result<Job> adder_launch_job(const AdderFlags& flags, const JobFlags& job_flags);

// Runs the variants there one after the other, each as a run of its own; prints what they came to. The exit code. No
// thread may run yet.
int launch_adder(const AdderFlags& flags, const AdderLaunch& launch);

}  // namespace pscloud

#pragma once

#include <string>
#include <vector>

#include "launch/plan.h"

namespace CLI {
class App;
}

namespace pscloud {

// What every job can be told beside its commands: flags of each verb that starts one. What is not given is empty or -1.
struct JobFlags {
  std::string name;
  std::vector<std::string> environment;
  std::vector<std::string> secrets;
  std::vector<std::string> files;
  std::string image;
  int workers_min = -1;
  double arrive_timeout_s = -1;
  double stop_grace_s = -1;
  double timeout_s = -1;
};

// In that group of the help.
void add_job_flags(CLI::App& verb, JobFlags& flags, const char* group);

// kInvalid names the flag.
Result<> apply_job_flags(const JobFlags& flags, Job& job);

}  // namespace pscloud

#pragma once

#include <string>
#include <string_view>

#include "launch/plan.h"

namespace pscloud {

// A job as a file: what `pscloud run` takes by flags, and what flags have no room for, such as a command for each role
// (docs/launch.md has the fields). `on` is what it says of where to run; empty if nothing. kInvalid with
// "file:line:column: ..." and the name that was probably meant.
struct JobFile {
  Job job;
  std::string on;
};
Result<JobFile> parse_job_file(std::string_view text, std::string_view file);
Result<JobFile> read_job_file(const std::string& path);

// The role of a job; made, with no tasks yet, if the job has none such.
RoleSpec& role_of(Job& job, TaskRole role);

// A name for a run of this command: "python3 /x/Train_Model.py" gives "train-model".
std::string run_name_of(const std::vector<std::string>& command);

}  // namespace pscloud

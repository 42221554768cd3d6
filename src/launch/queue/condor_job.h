#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "launch/plan.h"

namespace pscloud {

// What is submitted to HTCondor for a plan. Pure.

struct CondorSubmission {
  std::string folder = {};        // on this machine: what a task writes beside its messages, and HTCondor's own log
  std::string program = {};       // to be started, with `arguments`
  bool transfer_program = false;  // or it has the same path everywhere
  std::vector<std::string> agent = {};  // arguments of the program; "--number N" comes behind them
  // Copied to where each task runs; of "spec." the file "<number>.json" is added.
  std::vector<std::string> files = {};
  std::string specs = {};  // "<path>/spec.": where those are; empty: each task finds its own in a shared folder
  int lease_s = 60;        // a machine or launcher that does not answer for so long is gone
  std::string requirements = {};
  std::string accounting_group = {};
  int64_t time_max_s = 0;  // 0: as long as it takes
};

// One of a kind: by it the jobs are found again when the launcher was killed before it heard their number.
std::string condor_batch_name(const Plan& plan);

// The submit file: all tasks in the order of the plan, so that $(Process) is the number of a task in it. Nothing in it
// is the user's but names of files, images and requirements.
Result<std::string> condor_submit_file(const Plan& plan, const CondorSubmission& submission);

// A list of arguments as `arguments = ` takes it, whatever is in them. kInvalid if it has a line's end, which it cannot
// take.
Result<std::string> condor_arguments(const std::vector<std::string>& arguments);

}  // namespace pscloud

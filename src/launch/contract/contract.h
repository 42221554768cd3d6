#pragma once

#include <string>
#include <vector>

#include "launch/task.h"

namespace pscloud {

// How a program of some framework learns who it is and where the others are, so that it runs as it was written:
// docs/node-environment.md has the tables. Pure.
struct TaskContract {
  Variables variables;                 // what a user sets by himself wins over them
  std::vector<std::string> arguments;  // behind those of the command
};

// kInvalid if the framework cannot work so, such as ps-lite without a scheduler or TensorFlow with one; says what is
// missing or too much.
Result<> check_contract(Framework framework, const std::vector<TaskId>& tasks);

// Of the task `self`, which `view` has.
TaskContract contract_of(Framework framework, const ClusterView& view, TaskId self, const std::string& run);

// What a job has if nobody says: 1 where the framework cannot work without, else 0.
int schedulers_by_default(Framework framework);

// Whose end is the job's: the chief's if there is one, else the workers', else everybody's.
bool ends_job(TaskRole role, const std::vector<TaskId>& tasks);

}  // namespace pscloud

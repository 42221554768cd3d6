#pragma once

#include <string>
#include <vector>

#include "launch/contract/contract.h"
#include "launch/task.h"

namespace pscloud {

// What a task's command means on this machine.
struct TaskProgram {
  std::string path;
  std::vector<std::string> arguments;
  std::vector<std::string> environment;
};

// The environment is ours, then the framework's (`contract`), then the task's own, then `file_variables`. A virtualenv
// among the task's stands first in PATH. A command `pscloud` is this very program. kNotFound or kInvalid if there is no
// such program.
Result<TaskProgram> task_program(const TaskSpec& spec, const TaskContract& contract, const Variables& file_variables);

// Takes out of `environment` what a task gets as a file, by NAME_FILE: all that a program starts would inherit it.
void hide_secrets(const TaskSpec& spec, std::vector<std::string>& environment);

}  // namespace pscloud

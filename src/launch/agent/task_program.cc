#include "launch/agent/task_program.h"

#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "base/fd.h"
#include "launch/process/own_program.h"
#include "launch/process/processes.h"
#include "launch/process/spawn.h"

namespace pscloud {
namespace {

std::vector<std::string> task_environment(const TaskSpec& spec, const Variables& contract,
                                          const Variables& file_variables) {
  std::vector<std::string> all = inherited_environment();
  // The user's own word wins over the framework's.
  for (const Variables* variables : {&contract, &spec.environment, &file_variables}) {
    for (const auto& [name, value] : *variables) set_variable(all, name, value);
  }
  hide_secrets(spec, all);
  for (const auto& [name, value] : spec.environment) {
    if (name == "VIRTUAL_ENV") set_variable(all, "PATH", fmt::format("{}/bin:{}", value, variable_of(all, "PATH")));
  }
  return all;
}

}  // namespace

void hide_secrets(const TaskSpec& spec, std::vector<std::string>& environment) {
  constexpr std::string_view kSuffix = "_FILE";
  for (const TaskFile& file : spec.files) {
    const std::string_view name = file.variable;
    if (name.ends_with(kSuffix)) unset_variable(environment, name.substr(0, name.size() - kSuffix.size()));
  }
}

Result<TaskProgram> task_program(const TaskSpec& spec, const TaskContract& contract, const Variables& file_variables) {
  if (spec.command.empty()) return invalid("there is no command to run");
  TaskProgram program;
  program.environment = task_environment(spec, contract.variables, file_variables);
  program.arguments = spec.command;
  if (spec.command.front() == "pscloud") {
    const std::vector<std::string> ours = own_program();
    program.arguments.erase(program.arguments.begin());
    program.arguments.insert(program.arguments.begin(), ours.begin(), ours.end());
  }
  program.arguments.insert(program.arguments.end(), contract.arguments.begin(), contract.arguments.end());

  const std::string& word = program.arguments.front();
  const auto found = find_program(word, variable_of(program.environment, "PATH"));
  if (!found) return not_found("'{}': there is no such program in PATH", word);
  program.path = *found;
  const std::filesystem::path folder = spec.folder.empty() ? "." : spec.folder;
  if (::access((folder / program.path).c_str(), X_OK) != 0) {
    const int error = errno;
    if (error == ENOENT) return not_found("'{}': there is no such program", word);
    return invalid("'{}' cannot be run: {}", word, errno_text(error));
  }
  return program;
}

}  // namespace pscloud

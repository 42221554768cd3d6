#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <memory>
#include <string>
#include <vector>

#include "base/fd.h"
#include "cli/exit_code.h"
#include "cli/verb.h"
#include "launch/cloud/cloud_folder.h"
#include "launch/host/ssh_connection.h"
#include "launch/launcher.h"

namespace pscloud {
namespace {

constexpr const char* kConnectAbout = R"(Opens a shell on the machine, or in the container, where a task of a run is:

  pscloud connect clicks worker-1

or on a machine of a cluster (pscloud cluster):

  pscloud connect blue 0.worker)";

struct ConnectCommand {
  std::string run;
  std::string task;
};

Result<std::vector<std::string>> find_machine_shell(const ConnectCommand& command) {
  const RunFolder folder = TRY(open_cloud_folder(command.run));
  const CloudState state = TRY(read_cloud_state(folder));
  const CloudMachine machine = TRY(find_machine(state, command.task));
  SshOptions options;
  options.config_file = folder.path("ssh_config");
  std::vector<std::string> words = ssh_command(host_of_machine(folder, state, machine), options, false);
  words.insert(words.begin() + 1, "-t");
  return words;
}

Result<std::vector<std::string>> find_shell(const ConnectCommand& command) {
  const std::string runs = TRY(find_runs_folder());
  const auto known = RunFolder::open(runs, command.run);
  if (!known && open_cloud_folder(command.run)) return find_machine_shell(command);
  if (!known) return known.error();
  const RunFolder& folder = *known;
  const TaskId task = TRY(parse_task_id(command.task));
  const KnownRun run = TRY(open_run(folder));
  if (run.plan.find(task) == nullptr) {
    return not_found("the run '{}' has no task '{}': `pscloud status {}` lists them", command.run, command.task,
                     command.run);
  }
  return run.backend->shell(run.plan, task);
}

int run_connect(const ConnectCommand& command) {
  auto words = find_shell(command);
  if (!words) return fail(words.error());
  std::vector<char*> arguments;
  for (std::string& word : *words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  ::execvp(arguments[0], arguments.data());
  return fail(unavailable("cannot run {}: {}", words->front(), errno_text(errno)));
}

}  // namespace

void add_connect(CLI::App& verb, Action& action) {
  const auto command = std::make_shared<ConnectCommand>();
  verb.add_option("run", command->run, "a run, or a cluster")->type_name("NAME")->required();
  verb.add_option("task", command->task, "worker-0, say, or a machine")->type_name("TASK")->required();
  verb.footer(kConnectAbout);
  verb.callback([command, &action] { action = [command] { return run_connect(*command); }; });
}

}  // namespace pscloud

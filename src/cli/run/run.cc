#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "cli/exit_code.h"
#include "cli/run/job_flags.h"
#include "cli/run/run_job.h"
#include "cli/verb.h"
#include "launch/backend.h"
#include "launch/contract/contract.h"
#include "launch/job_certificates.h"
#include "launch/job_file.h"

namespace pscloud {
namespace {

constexpr const char* kRunAbout = R"(Starts servers and workers of any system, shows what they print, and ends them
all: servers are stopped when the last worker has ended, or the first task has
failed; nothing stays behind. The same command runs in every role:

  pscloud run --workers 3 -- hostname
  pscloud run --scheduler --servers 2 --workers 4 -- ./program_of_pscloud
  pscloud run --framework dmlc --servers 2 --workers 4 -- ./my_program --lr 0.1
  pscloud run --on cluster.json --framework tensorflow --chief --servers 1 \
      --workers 2 -- python3 train.py
  pscloud run --job clicks.json                a command for each role
  pscloud run --plan ...                       only says what would be done

A program learns from its environment who it is and where the others are, in
the way of its framework (docs/node-environment.md).

Ctrl-C stops all tasks cleanly; once more ends them at once. With --detach the
run goes on without this terminal:

  pscloud status               runs, and who is missing
  pscloud logs RUN worker-0 -f what a task prints
  pscloud stop RUN
  pscloud down                 removes whatever killed launchers have left

All is kept in a folder of the run, below $PSCLOUD_HOME or
~/.local/state/pscloud (docs/launch.md).)";

struct RunCommand {
  std::string job_file;
  std::string framework;
  int servers = -1;
  int workers = -1;
  bool scheduler = false;
  bool chief = false;
  bool evaluator = false;
  bool worker_may_fail = false;
  std::vector<std::string> command;
  JobFlags flags;
  RunJobOptions options;
};

void set_roles(const RunCommand& command, Job& job) {
  if (command.servers >= 0) role_of(job, TaskRole::kServer).count = command.servers;
  if (command.workers >= 0) role_of(job, TaskRole::kWorker).count = command.workers;
  if (command.chief) role_of(job, TaskRole::kChief).count = 1;
  if (command.evaluator) role_of(job, TaskRole::kEvaluator).count = 1;
  if (command.scheduler || schedulers_by_default(job.framework) > 0) {
    RoleSpec& scheduler = role_of(job, TaskRole::kScheduler);
    if (scheduler.count == 0) scheduler.count = 1;
  }
  if (!command.command.empty()) {
    for (RoleSpec& role : job.roles) role.commands = {command.command};
  }
}

Result<JobFile> make_job(const RunCommand& command) {
  JobFile result;
  if (!command.job_file.empty()) result = TRY(read_job_file(command.job_file));
  Job& job = result.job;
  if (!command.framework.empty()) job.framework = TRY(parse_framework(command.framework));
  set_roles(command, job);
  if (command.worker_may_fail) job.worker_may_fail = true;
  TRY(apply_job_flags(command.flags, job));
  if (wants_certificates(job)) TRY(add_certificates(job));
  return result;
}

int run_run(const RunCommand& command) {
  auto made = make_job(command);
  if (!made) return fail(made.error());
  RunJobOptions options = command.options;
  if (options.on.empty()) options.on = made->on.empty() ? "local" : made->on;
  return run_job(std::move(made->job), options);
}

}  // namespace

void add_run(CLI::App& verb, Action& action) {
  const auto command = std::make_shared<RunCommand>();
  add_run_job_flags(verb, command->options, "Flags");
  verb.add_option("--framework", command->framework,
                  "whose variables the program reads: pscloud, tensorflow, ... [pscloud]")
      ->type_name("NAME");
  verb.add_option("--job", command->job_file, "a job as a file (docs/launch.md)")->type_name("FILE");
  verb.add_option("--servers", command->servers, "how many")->type_name("N")->check(CLI::NonNegativeNumber);
  verb.add_option("--workers", command->workers, "how many")->type_name("N")->check(CLI::NonNegativeNumber);
  verb.add_flag("--scheduler", command->scheduler, "one scheduler too; dmlc and poseidon have one anyway");
  verb.add_flag("--chief", command->chief, "one chief too, whose end is the job's");
  verb.add_flag("--evaluator", command->evaluator, "one evaluator too");
  verb.add_flag("--worker-may-fail", command->worker_may_fail, "the other workers go on");
  add_job_flags(verb, command->flags, "Flags");
  verb.add_flag("--quiet", command->options.quiet, "what tasks print goes to their files only");
  verb.add_flag("--json", command->options.json, "the result for programs, on stdout");
  verb.add_option("command", command->command, "what to run, behind --")->type_name("-- COMMAND");
  verb.footer(kRunAbout);
  verb.callback([command, &action] { action = [command] { return run_run(*command); }; });
}

}  // namespace pscloud

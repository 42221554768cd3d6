#include "launch/rendezvous/rendezvous.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cli/exit_code.h"
#include "cli/verb.h"
#include "launch/process/login_environment.h"

namespace pscloud {
namespace {

constexpr const char* kRendezvousAbout = R"(Runs one task of a job that a submit file of your own starts, where nobody
knows in advance which machine a task gets. All tasks meet in a folder that
they share; each is told who is where in the way of its framework, and then
its command begins:

  arguments = rendezvous --folder /shared/meet --job $(Cluster) \
      --task worker-$(Process) --workers 4 --servers 1 \
      --framework tensorflow --chief 1 -- python3 train.py

Every task has the same flags but --task. The chief, or else the first
scheduler, server or worker, leads: it must be among those that start. When
the tasks are done that end the job (the chief, or else the workers), servers
are stopped and end with code 0. A task that fails ends all with code 1; tasks
that do not come are named, and all end with code 3 (docs/rendezvous.md).)";

struct RendezvousCommand {
  std::string folder;
  std::string job;
  std::string task;
  std::string framework = "pscloud";
  std::map<TaskRole, int> counts;
  int workers_min = 0;
  bool worker_may_fail = false;
  double timeout_s = 300;
  double stop_grace_s = 30;
  double lost_after_s = 90;
  std::string advertise;
  std::vector<std::string> command;
};

// The job's id becomes the name of a folder.
Result<> check_job_id(const std::string& id) {
  const auto fits = [](char letter) {
    return (letter >= '0' && letter <= '9') || (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
           letter == '-' || letter == '_' || letter == '.';
  };
  if (!id.empty() && id.size() <= 100 && id.front() != '.' && std::ranges::all_of(id, fits)) return {};
  return invalid("--job {}: letters, digits, '-', '_' and '.', 100 at most; '$(Cluster)' of HTCondor, say", id);
}

Result<Plan> plan_of(const RendezvousCommand& command) {
  TRY(check_job_id(command.job));
  Job job;
  job.run = "rendezvous";
  job.framework = TRY(parse_framework(command.framework));
  for (const auto& [role, count] : command.counts) {
    if (count > 0) job.roles.push_back({.role = role, .count = count, .commands = {command.command}});
  }
  job.workers_min = command.workers_min;
  job.worker_may_fail = command.worker_may_fail;
  job.arrive_timeout_ms = static_cast<int>(command.timeout_s * 1000);
  job.stop_grace_ms = static_cast<int>(command.stop_grace_s * 1000);
  return make_plan(job, Cluster{}, command.job);
}

int run_rendezvous_verb(const RendezvousCommand& command) {
  auto plan = plan_of(command);
  if (!plan) return fail(plan.error());
  const auto task = parse_task_id(command.task);
  if (!task) return fail(task.error());
  for (PlannedTask& planned : plan->tasks) planned.spec.advertise = command.advertise;
  RendezvousOptions options{.shared = command.folder, .task = *task, .times = {}};
  options.times.lost_after = std::chrono::milliseconds(static_cast<int64_t>(command.lost_after_s * 1000));
  options.times.heartbeat = std::min(options.times.heartbeat, options.times.lost_after / 4);
  add_login_environment();
  return run_rendezvous(*plan, options);
}

}  // namespace

void add_rendezvous(CLI::App& verb, Action& action) {
  const auto command = std::make_shared<RendezvousCommand>();
  verb.footer(kRendezvousAbout);
  verb.add_option("--folder", command->folder, "on a disk that all tasks share")->type_name("DIR")->required();
  verb.add_option("--job", command->job, "the job's id, its own each time")->type_name("ID")->required();
  verb.add_option("--task", command->task, "who this is: worker-0, server-1, ...")->type_name("TASK")->required();
  verb.add_option("--framework", command->framework, "whose variables the program reads [pscloud]")->type_name("NAME");
  const std::pair<TaskRole, const char*> roles[] = {{TaskRole::kServer, "--servers"},
                                                    {TaskRole::kWorker, "--workers"},
                                                    {TaskRole::kScheduler, "--scheduler"},
                                                    {TaskRole::kChief, "--chief"},
                                                    {TaskRole::kEvaluator, "--evaluator"}};
  for (const auto& [role, flag] : roles) {
    verb.add_option(flag, command->counts[role], "how many")->type_name("N")->check(CLI::Range(0, 10000));
  }
  const CLI::Range seconds(0.1, 1e6);
  verb.add_option("--workers-min", command->workers_min, "begin when so many workers are there [all]")->type_name("N");
  verb.add_flag("--worker-may-fail", command->worker_may_fail, "the other workers go on");
  verb.add_option("--timeout", command->timeout_s, "for all to be there [300]")->type_name("SECONDS")->check(seconds);
  verb.add_option("--stop-grace", command->stop_grace_s, "from SIGTERM to SIGKILL [30]")
      ->type_name("SECONDS")
      ->check(seconds);
  verb.add_option("--lost-after", command->lost_after_s, "without a sign of life, a task or the leader is gone [90]")
      ->type_name("SECONDS")
      ->check(seconds);
  verb.add_option("--advertise", command->advertise, "host, address or interface to be reached at [found out]")
      ->type_name("NAME");
  verb.add_option("command", command->command, "what to run, behind --")->type_name("-- CMD")->required();
  verb.callback([command, &action] { action = [command] { return run_rendezvous_verb(*command); }; });
}

}  // namespace pscloud

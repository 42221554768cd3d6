#include "cli/train/train_launch.h"

#include <utility>

#include "cli/train/train_report.h"
#include "io/config_file.h"
#include "launch/job_certificates.h"
#include "launch/job_file.h"
#include "learn/config.pb.h"

namespace pscloud {
namespace {

constexpr const char* kServerMemory = "64G";  // as much as the machine has
constexpr const char* kWaitForWorkerMs = "1800000";

RoleSpec node_spec(TaskRole role, int count, Variables environment) {
  RoleSpec spec;
  spec.role = role;
  spec.count = count;
  spec.commands = {{"pscloud", "node"}};
  spec.environment = std::move(environment);
  return spec;
}

// What each worker is to do.
std::vector<std::vector<std::string>> train_commands(const TrainJob& job, const TrainOutput& output) {
  std::vector<std::string> command{"pscloud", "train", "--threads", std::to_string(job.counts.threads)};
  if (job.config.strict) command.emplace_back("--strict");
  if (job.resume) command.emplace_back("--resume");
  if (output.quiet) command.emplace_back("--quiet");
  if (output.json) command.emplace_back("--json");
  std::vector<std::vector<std::string>> commands(job.counts.workers, command);
  if (!output.tensorboard.empty()) {
    commands.front().insert(commands.front().end(), {"--tensorboard", output.tensorboard});
  }
  return commands;
}

// A line of our log that tells of what is as it should be: "09:25:12.345 I server: ...".
bool is_information(std::string_view line) {
  return line.size() > 15 && line[2] == ':' && line[8] == '.' &&
         (line.substr(12, 3) == " I " || line.substr(12, 3) == " D ");
}

}  // namespace

Result<Job> launch_job(const ConfigFlags& config_flags, const WorkerCounts& counts,
                       std::vector<std::vector<std::string>> commands, const JobFlags& flags) {
  PS::LM::Config config;
  TRY(read_config(config_flags, config));
  Job job;
  job.framework = Framework::kPscloud;
  job.worker_may_fail = true;  // the others do its work
  // A new worker finds its way into what is shared part by part; in batch training each has its share from the
  // beginning, and in synchronous training all go in step. When none is left the launcher ends the job, unless it has a
  // machine for another one: the scheduler need not hurry.
  job.late_workers = !config.has_darlin() && !config.async_sgd().synchronous();
  job.environment.emplace_back("PSCLOUD_RESTART_WAIT_MS", kWaitForWorkerMs);
  // Each thread of a worker is a worker to the scheduler.
  Variables expected{{"PSCLOUD_WORKERS", std::to_string(counts.workers * counts.threads)}};
  if (flags.workers_min > 0) {
    expected.emplace_back("PSCLOUD_WORKERS_MIN", std::to_string(flags.workers_min * counts.threads));
  }
  job.roles.push_back(node_spec(TaskRole::kScheduler, 1, std::move(expected)));
  job.roles.push_back(node_spec(TaskRole::kServer, counts.servers, {{"PSCLOUD_MEMORY_MAX", kServerMemory}}));
  RoleSpec& worker = job.roles.emplace_back();
  worker.role = TaskRole::kWorker;
  worker.count = counts.workers;
  worker.commands = std::move(commands);
  TRY(apply_job_flags(flags, job));
  if (wants_certificates(job)) TRY(add_certificates(job));
  job.roles.back().secrets.push_back({"train.conf", config_text(config), kConfigVariable, false});
  return job;
}

Result<Job> train_launch_job(const TrainJob& train, const TrainOutput& output, const JobFlags& flags) {
  Job job = TRY(launch_job(train.config, train.counts, train_commands(train, output), flags));
  job.roles.back().environment.emplace_back(kMetricsLinesVariable, "1");
  return job;
}

int run_launched(Job job, RunJobOptions options, const ConfigFlags& config, bool json) {
  TrainVoice voice;
  options.look = [&voice](const TaskEvent& event) { return voice.look(event); };
  options.usual_name = run_name_of({config.file});
  // The result is what the workers say; a job that is only begun or planned has no other than its own.
  options.json = json && (options.detach || options.plan || !options.controller.empty());
  return run_job(std::move(job), options);
}

LineLook TrainVoice::look(const TaskEvent& event) {
  const bool died = event.kind == TaskEvent::Kind::kLost ||
                    (event.kind == TaskEvent::Kind::kExited && (event.code != 0 || event.signal != 0));
  if (died && speaker_ == event.task) speaker_.reset();
  // One that came in the place of another has its rank, and shows the table if it is the first.
  if (died) died_.insert(event.task);
  if (event.kind == TaskEvent::Kind::kRunning && died_.erase(event.task) > 0) speaker_.reset();
  if (event.kind != TaskEvent::Kind::kLine) return LineLook::kHidden;
  if (event.is_stderr) return is_information(event.text) ? LineLook::kHidden : LineLook::kNamed;
  if (event.task.role != TaskRole::kWorker) return LineLook::kHidden;        // that a node is up, and where
  if (event.text.starts_with("**metrics_data: ")) return LineLook::kHidden;  // the table has it
  if (!speaker_) speaker_ = event.task;
  return speaker_ == event.task ? LineLook::kBare : LineLook::kHidden;
}

}  // namespace pscloud

#include "cli/run/run_job.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>  // NOLINT: kill() is POSIX
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <optional>

#include "base/json.h"
#include "base/text.h"
#include "cli/cloud/controller_start.h"
#include "cli/exit_code.h"
#include "launch/job_file.h"
#include "launch/launcher.h"
#include "launch/swarm/machine_image.h"

namespace pscloud {
namespace {

// For the terminal of who waits for a detached run, before that lets go of it.
constexpr std::chrono::seconds kLastWords{2};

std::string line_of(std::string_view text) { return fmt::format("pscloud: {}\n", escape_controls(text)); }

std::string task_counts(const Plan& plan, const RunState& state) {
  std::vector<std::string> parts;
  for (const TaskState kind :
       {TaskState::kDone, TaskState::kStopped, TaskState::kDrained, TaskState::kFailed, TaskState::kLost}) {
    const auto count = std::ranges::count(state.tasks, kind, &TaskStatus::state);
    if (count > 0) parts.push_back(fmt::format("{} {}", count, task_state_name(kind)));
  }
  const size_t all = plan.tasks.size();
  return fmt::format("{} task{}: {}", all, all == 1 ? "" : "s", fmt::join(parts, ", "));
}

void print_end_json(const Plan& plan, const RunFolder& folder, const LaunchEnd& end) {
  JsonWriter json;
  const auto state = folder.state();
  json.begin_object().field("run", plan.run).field("folder", folder.path());
  json.field("state", state ? step_name(state->step) : "failed").field("exit_code", end.exit_code);
  json.field("message", end.outcome.message);
  if (end.outcome.root_cause) json.field("root_cause", end.outcome.root_cause->text());
  json.key("tasks").begin_array();
  if (state) {
    for (const TaskStatus& task : state->tasks) {
      json.begin_object().field("task", task.id.text()).field("state", task_state_name(task.state));
      json.field("host", task.host);
      if (task.code) json.field("exit_code", *task.code);
      if (task.attempt > 0) json.field("attempt", task.attempt);
      json.end_object();
    }
  }
  json.end_array().key("left").begin_array();
  for (const std::string& line : end.left) json.value(line);
  fmt::print("{}\n", json.end_array().end_object().text());
}

std::string end_report(const Plan& plan, const RunFolder& folder, const LaunchEnd& end) {
  std::string report;
  if (end.outcome.root_cause && !end.last_lines.empty()) {
    report += fmt::format("  the last lines of {}:\n", end.outcome.root_cause->text());
    for (const std::string& line : end.last_lines) report += fmt::format("    {}\n", escape_controls(line));
  }
  for (const std::string& line : end.left) report += line_of(fmt::format("left: {}; `pscloud down` tries again", line));
  const auto state = folder.state();
  return report +
         line_of(fmt::format("run {} {}{}; its folder is {}", plan.run, state ? step_name(state->step) : "has ended",
                             state ? " (" + task_counts(plan, *state) + ")" : "", folder.path()));
}

// In the process that stays with the run.
int watch(const Plan& plan, Backend& backend, RunFolder& folder, const RunJobOptions& options,
          const std::function<void()>& started) {
  std::fflush(nullptr);  // the terminal is written to beside it
  std::optional<Terminal> terminal(std::in_place, options.json ? STDERR_FILENO : STDOUT_FILENO, STDERR_FILENO);
  LaunchOptions launch_options;
  if (!options.quiet && !options.detach) launch_options.terminal = &*terminal;
  launch_options.look = options.look;
  // The launcher's log has it in any case, and is all that a detached run has.
  bool for_terminal = true;
  launch_options.say = [&](std::string_view text) {
    if (for_terminal && !options.silent) terminal->write(Terminal::Stream::kErr, line_of(text));
  };
  launch_options.started = [&] {
    if (options.detach) terminal->drain(kLastWords);
    started();
    for_terminal = !options.detach;
  };
  launch_options.leave = [&] { terminal->drain(kLastWords); };
  const auto end = launch(plan, backend, folder, launch_options);
  if (end && !options.on_end && !options.json) {
    terminal->write(Terminal::Stream::kErr, end_report(plan, folder, *end));
  }
  terminal.reset();
  if (options.on_end) {
    options.on_end(end);
    return end ? end->exit_code : exit_code(end.error().code);
  }
  if (!end) {
    if (options.json) {
      JsonWriter json;
      json.begin_object().field("run", plan.run).field("folder", folder.path()).field("state", "failed");
      json.field("exit_code", exit_code(end.error().code)).field("message", end.error().message);
      fmt::print("{}\n", json.end_object().text());
    }
    return exit_code(end.error().code);  // it was said already
  }
  if (options.json) print_end_json(plan, folder, *end);
  return end->exit_code;
}

void print_started(const RunFolder& folder, bool json) {
  if (json) {
    JsonWriter writer;
    writer.begin_object().field("run", folder.name()).field("folder", folder.path()).field("pid", folder.watcher());
    fmt::print("{}\n", writer.end_object().text());
    return;
  }
  fmt::print("{}\n", folder.name());
  fmt::print(stderr, "pscloud: run {} has started; `pscloud status`, `pscloud logs {} -f`, `pscloud stop {}`\n",
             folder.name(), folder.name(), folder.name());
}

// Goes on in a process of its own session, without the terminal; this one waits until the run has started or failed.
int detach(const Plan& plan, Backend& backend, RunFolder& folder, const RunJobOptions& options) {
  int pipe_fds[2] = {-1, -1};
  if (::pipe2(pipe_fds, O_CLOEXEC) != 0) return fail(unavailable("cannot make a pipe: {}", errno_text(errno)));
  Fd read_end(pipe_fds[0]);
  Fd write_end(pipe_fds[1]);
  std::fflush(nullptr);
  // Until it has started, Ctrl-C is for the run: who waits here hands it on.
  std::optional<Interrupts> interrupts(std::in_place);
  const pid_t child = ::fork();
  if (child < 0) return fail(unavailable("cannot start a process: {}", errno_text(errno)));
  if (child == 0) {
    read_end = Fd();
    ::setsid();
    const Fd nothing(::open("/dev/null", O_RDWR | O_CLOEXEC));
    const Fd log(::open(folder.path("launcher.log").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
    ::dup2(nothing.get(), STDIN_FILENO);
    ::dup2(nothing.get(), STDOUT_FILENO);
    int code = kExitFailed;
    if (folder.write_watcher()) {
      // Until it has started, errors are for the terminal.
      code = watch(plan, backend, folder, options, [&] {
        ::dup2(log ? log.get() : nothing.get(), STDERR_FILENO);
        if (::write(write_end.get(), "+", 1) < 0) return;
        write_end = Fd();
      });
    }
    std::fflush(nullptr);
    ::_exit(code);
  }
  write_end = Fd();
  pollfd polled[] = {{read_end.get(), POLLIN, 0}, {interrupts->fd(), POLLIN, 0}};
  while (polled[0].revents == 0) {
    if (::poll(polled, 2, -1) < 0) continue;
    for (int i = interrupts->take(); i > 0; --i) ::kill(child, SIGINT);
  }
  char byte = 0;
  const bool has_started = ::read(read_end.get(), &byte, 1) == 1;
  interrupts.reset();
  if (has_started) {
    print_started(folder, options.json);
    return kExitDone;
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  return WIFEXITED(status) ? WEXITSTATUS(status) : kExitFailed;
}

// With what the cluster would be given beside it.
std::string json_with_preview(const Plan& plan, const std::string& preview) {
  std::string json = plan_json(plan);
  if (preview.empty()) return json;
  json.pop_back();  // the brace at its end
  return fmt::format("{},\"preview\":{}}}", json, JsonWriter().value(preview).text());
}

int show_plan(const Job& job, const Cluster& cluster, bool json) {
  const auto plan = make_plan(job, cluster, "j0");
  if (!plan) return fail(plan.error());
  if (const auto possible = check_wishes(*plan); !possible) return fail(possible.error());
  const auto backend = make_backend(cluster, "");
  if (!backend) return fail(backend.error());
  const auto preview = (*backend)->preview(*plan);
  if (!preview) return fail(preview.error());
  if (const std::string unheeded = unheeded_wishes(*plan); !unheeded.empty()) say(unheeded);
  fmt::print("{}", json ? json_with_preview(*plan, *preview) + "\n" : plan_text(*plan));
  if (!json && !preview->empty()) fmt::print("\n{}", *preview);
  return kExitDone;
}

// The exit code, if a controller is to look after the run.
std::optional<int> run_on_controller(const Job& job, const Cluster& cluster, bool named, const RunJobOptions& options) {
  ControllerStart start{.where = options.controller,
                        .keep_cluster = options.keep_cluster,
                        .logs_to = options.logs_to,
                        .linger_s = options.linger_s,
                        .named = named,
                        .accept_new_host_keys = options.accept_new_host_keys,
                        .json = options.json};
  if (options.detach && options.controller.empty()) {
    auto cloud = find_cloud_controller(options.on);
    if (!cloud) return fail(cloud.error());
    start.cloud = *std::move(cloud);
  }
  if (!start.cloud && (!start.logs_to.empty() || start.keep_cluster)) {
    return fail_usage("--logs-to and --keep-cluster are for --detach on a cluster with a controller",
                      "`pscloud cluster up --help` tells how to make one");
  }
  if (!start.logs_to.empty() && start.keep_cluster) {
    return fail_usage("--logs-to is for a cluster that is taken down", "with --keep-cluster the logs stay there");
  }
  if (!start.logs_to.empty() && (!start.logs_to.starts_with("s3://") || start.logs_to.ends_with('/'))) {
    return fail_usage(fmt::format("--logs-to {}: it must be a folder of S3", start.logs_to), "s3://bucket/logs, say");
  }
  if (!start.cloud && options.detach && options.controller.empty() && !cluster.cloud.empty()) {
    say(
        fmt::format("the cluster {0} has no controller: the launcher stays on this machine, which must stay on, and "
                    "nobody takes the "
                    "cluster down at the end (`pscloud cluster down {0}` does); one of `pscloud cluster up "
                    "--controller` needs neither",
                    cluster.cloud));
  }
  if (!start.cloud && options.controller.empty()) return std::nullopt;
  const Cluster there = start.cloud ? start.cloud->cluster : cluster;
  return start_on_controller(job, there, std::move(start));
}

}  // namespace

void add_run_job_flags(CLI::App& verb, RunJobOptions& options, const char* group) {
  verb.add_option("--on", options.on, "where: local, a cluster file, or such as slurm:partition=gpu")
      ->type_name("TARGET")
      ->group(group);
  verb.add_flag("--plan", options.plan, "say what would be done, and do nothing")->group(group);
  verb.add_flag("--detach", options.detach, "come back when it has started")->group(group);
  verb.add_flag("--accept-new-host-keys", options.accept_new_host_keys,
                "of hosts that ssh has never seen; a key that has changed is never accepted")
      ->group(group);
  verb.add_option("--controller", options.controller, "a machine that looks after it: a host of ssh, or local")
      ->type_name("HOST")
      ->group(group);
  verb.add_option("--linger", options.linger_s, "that a controller answers after the end [600]")
      ->type_name("SECONDS")
      ->check(CLI::Range(0, 10000000))
      ->group(group);
  verb.add_option("--logs-to", options.logs_to,
                  "s3://bucket/folder for the logs of a controller that goes with its run")
      ->type_name("URI")
      ->group(group);
  verb.add_flag("--keep-cluster", options.keep_cluster,
                "with --detach on a cluster that has a controller, which else takes it down at the end")
      ->group(group);
}

int run_job(Job job, const RunJobOptions& options) {
  auto cluster = find_cluster(options.on.empty() ? "local" : options.on);
  if (!cluster) return fail(cluster.error());
  if (options.accept_new_host_keys && cluster->target == "ssh") {
    cluster->options.emplace_back("accept_new_host_keys", "yes");
  }
  if (const auto image = use_own_image(*cluster, job); !image) return fail(image.error());
  const bool named = !job.run.empty();
  if (!named) {
    job.run = options.usual_name;
    for (const RoleSpec& role : job.roles) {
      if (!role.commands.empty() && options.usual_name.empty() && (job.run.empty() || role.role == TaskRole::kWorker)) {
        job.run = run_name_of(role.commands.front());
      }
    }
    if (job.run.empty()) job.run = "run";
  }
  if (options.plan) return show_plan(job, *cluster, options.json);
  const auto runs = find_runs_folder();
  if (!runs) return fail(runs.error());
  // What is wrong with the options is found before there is a run.
  if (const auto possible = make_backend(*cluster, ""); !possible) return fail(possible.error());
  if (const auto code = run_on_controller(job, *cluster, named, options)) return *code;
  auto run = new_run(*runs, job, *cluster, named);
  if (!run) return fail(run.error());
  options.on_folder(run->folder.path());
  const auto backend = make_backend(*cluster, run->folder.path());
  if (!backend) return fail(backend.error());
  if (options.detach) return detach(run->plan, **backend, run->folder, options);
  return watch(run->plan, **backend, run->folder, options, [] {});
}

}  // namespace pscloud

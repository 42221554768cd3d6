#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <ctime>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/fd.h"
#include "cli/exit_code.h"
#include "cli/run/run_job.h"
#include "cli/verb.h"
#include "launch/cluster_file.h"

namespace pscloud {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPsdRunAbout = R"(Runs a job of Poseidon as its own psd_run did: ps_master on the master node,
ps_server on each server node, and the command on each worker node, with
--distributed, --master_address and --client_id behind it. A list of commands
with commas between them is one for each worker.

  psd_run -c cluster.json -o logs "python train.py --batch_size 32"

What it does is written to poseidon_run.log, and what the processes print to
OUT/poseidon_log_<time>/ as master.log, server0.log, worker0.log and so on, as
it comes.
The cluster file may have different numbers of servers and workers.)";

constexpr uint16_t kMasterPort = 5555;  // all that ps_master knows

struct PsdRunCommand {
  std::string cluster;
  std::string out = ".";
  std::string command;
  RunJobOptions options;
};

int count_hosts(const Cluster& cluster, TaskRole role) {
  return static_cast<int>(std::ranges::count_if(
      cluster.hosts, [role](const Host& host) { return std::ranges::find(host.roles, role) != host.roles.end(); }));
}

// The words of a shell, which psd_run's commands are for; the flags of Poseidon come behind them.
std::vector<std::string> shell_words(const std::string& command) {
  return {"/bin/sh", "-c", command + " \"$@\"", "psd_run"};
}

// One for all workers, or one for each: a list with as many parts as there are workers. Anything else with commas in it
// is one command, for arguments have commas too; who meant a list hears of it.
std::vector<std::vector<std::string>> worker_commands(const std::string& text, int workers) {
  std::vector<std::vector<std::string>> commands;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    commands.push_back(shell_words(text.substr(at, end - at)));
    at = end + 1;
  }
  if (commands.size() == static_cast<size_t>(workers)) return commands;
  if (commands.size() > 1) {
    fmt::print(
        stderr,
        "pscloud: the command has {} parts between commas, and there {} {} worker{}: each of them runs the whole "
        "as one command\n",
        commands.size(), workers == 1 ? "is" : "are", workers, workers == 1 ? "" : "s");
  }
  return {shell_words(text)};
}

Result<Job> psd_job(const PsdRunCommand& flags) {
  const Cluster cluster = TRY(find_cluster(flags.cluster));
  if (!cluster.poseidon) {
    return invalid(
        "{}: it has no worker_nodes and server_nodes, as a file of psd_run has; `pscloud run --on {}` runs it",
        flags.cluster, flags.cluster);
  }
  Job job;
  job.framework = Framework::kPoseidon;
  RoleSpec master;
  master.role = TaskRole::kScheduler;
  master.commands = {{"ps_master"}};
  master.port = kMasterPort;
  RoleSpec server;
  server.role = TaskRole::kServer;
  server.count = count_hosts(cluster, TaskRole::kServer);
  server.commands = {{"ps_server"}};
  RoleSpec worker;
  worker.role = TaskRole::kWorker;
  worker.count = count_hosts(cluster, TaskRole::kWorker);
  worker.commands = worker_commands(flags.command, worker.count);
  job.roles = {master, server, worker};
  return job;
}

// A file of the run's folder, and what users of psd_run call it.
struct PsdLog {
  fs::path ours;
  fs::path theirs;
};

std::vector<PsdLog> logs_of(const Job& job, const fs::path& folder, const fs::path& out) {
  std::vector<PsdLog> logs = {{folder / "launcher.log", "poseidon_run.log"}};
  for (const RoleSpec& role : job.roles) {
    for (int index = 0; index < role.count; ++index) {
      const TaskId task{role.role, index};
      const std::string theirs =
          role.role == TaskRole::kScheduler ? "master.log" : fmt::format("{}{}.log", role_name(role.role), index);
      logs.push_back({folder / "logs" / (task.text() + ".log"), out / theirs});
    }
  }
  return logs;
}

// From the start on, so that they can be followed, and are there if this process is killed. The launcher only appends
// to its files: a second name for each is enough. On another file system it is a pointer until the end.
void link_logs(const std::vector<PsdLog>& logs) {
  std::error_code error;
  for (const PsdLog& log : logs) {
    const Fd made(::open(log.ours.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
    fs::remove(log.theirs, error);
    fs::create_hard_link(log.ours, log.theirs, error);
    if (error) fs::create_symlink(fs::absolute(log.ours), log.theirs, error);
    if (error) {
      fmt::print(stderr, "pscloud: '{}' cannot be made yet: {}\n", log.theirs.string(), error.message());
      return;  // the others neither; keep_logs() tries again
    }
  }
}

// What is no file of its own yet becomes one: the run's folder may go.
Result<> keep_logs(const std::vector<PsdLog>& logs) {
  for (const PsdLog& log : logs) {
    std::error_code error;
    if (!fs::is_symlink(log.theirs, error) && fs::equivalent(log.ours, log.theirs, error)) continue;
    error.clear();
    fs::path copy = log.theirs;
    copy += ".new";
    fs::copy_file(log.ours, copy, fs::copy_options::overwrite_existing, error);
    if (!error) fs::rename(copy, log.theirs, error);
    if (error) return unavailable("cannot write '{}': {}", log.theirs.string(), error.message());
  }
  return {};
}

// A new one: of two that begin in one second the other gets a number.
Result<fs::path> make_log_folder(const fs::path& parent) {
  const std::string name = fmt::format("poseidon_log_{:%Y%m%d-%H%M%S}", fmt::localtime(std::time(nullptr)));
  std::error_code error;
  fs::create_directories(parent, error);
  fs::path folder = parent / name;
  for (int number = 2; !error && !fs::create_directory(folder, error); ++number) {
    folder = parent / fmt::format("{}-{}", name, number);
  }
  if (error) return unavailable("cannot make the folder '{}': {}", folder.string(), error.message());
  return folder;
}

int run_psd_run(const PsdRunCommand& flags) {
  auto job = psd_job(flags);
  if (!job) return fail(job.error());
  const auto out = make_log_folder(flags.out);
  if (!out) return fail(out.error());
  std::vector<PsdLog> logs;
  RunJobOptions options = flags.options;
  options.on = flags.cluster;
  options.usual_name = "psd-run";
  options.on_folder = [&](const std::string& folder) {
    logs = logs_of(*job, folder, *out);
    link_logs(logs);
  };
  const int code = run_job(*job, options);
  if (logs.empty()) return code;
  if (const auto kept = keep_logs(logs); !kept) return fail(kept.error());
  fmt::print(stderr, "pscloud: the logs are in {}\n", out->string());
  return code;
}

}  // namespace

void add_psd_run(CLI::App& verb, Action& action) {
  const auto flags = std::make_shared<PsdRunCommand>();
  verb.add_option("-c,--cluster_config", flags->cluster, "the cluster: Poseidon's JSON")->type_name("FILE")->required();
  verb.add_option("-o,--out", flags->out, "where the folder of logs is made [.]")->type_name("FOLDER");
  verb.add_flag("--accept-new-host-keys", flags->options.accept_new_host_keys,
                "of hosts that ssh has never seen; a key that has changed is never accepted");
  verb.add_option("cmd", flags->command, "what each worker runs, for a shell")->type_name("CMD")->required();
  verb.footer(kPsdRunAbout);
  verb.group("");
  verb.callback([flags, &action] { action = [flags] { return run_psd_run(*flags); }; });
}

}  // namespace pscloud

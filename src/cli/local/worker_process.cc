#include "cli/local/worker_process.h"

#include <fmt/core.h>

#include <cstdio>
#include <memory>
#include <thread>

#include "base/log.h"
#include "base/text.h"
#include "cli/exit_code.h"
#include "cli/local/child_process.h"
#include "cli/local/local_cluster.h"
#include "cli/local/local_workers.h"

namespace pscloud {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kWorkerSilenceMax{std::chrono::hours(24 * 365)};  // a worker ends by its own deadlines
constexpr milliseconds kWorkerEndTimeout{20000};

// A worker process and what it tells.
struct WorkerProcess {
  ChildProcess process;
  std::unique_ptr<LineChannel> lines;
};

Result<WorkerProcess> start_worker_process(const std::vector<std::string>& words, const LocalCluster& cluster) {
  auto [ours, theirs] = TRY(LineChannel::make_pair());
  auto process = TRY(ChildProcess::start(words, cluster.worker_environment(), std::move(theirs)));
  return WorkerProcess{std::move(process), std::make_unique<LineChannel>(std::move(ours))};
}

// Until it says how it ended.
Result<std::string> listen(LineChannel& lines, int number, const std::function<Result<>(const std::string& text)>& show,
                           const Cancelled& cancelled) {
  while (true) {
    auto line = lines.read_line(kWorkerSilenceMax, cancelled);
    if (!line) return job_failed("worker process {}: {}", number, line.error().message);
    const size_t space = line->find(' ');
    const std::string word = line->substr(0, space);
    const std::string rest = space == std::string::npos ? "" : line->substr(space + 1);
    if (word == "progress") {
      TRY(show(rest));
    } else if (word == "done") {
      return rest;
    } else {
      return Error{word == "invalid" ? Code::kInvalid : Code::kFailed, rest};
    }
  }
}

}  // namespace

Result<std::string> run_worker_processes(const WorkerCounts& counts, const std::vector<std::string>& words,
                                         const std::function<Result<>(const std::string& text)>& show,
                                         const Cancelled& cancelled) {
  LocalClusterSpec spec;
  spec.servers = counts.servers;
  spec.workers = counts.workers * counts.threads;
  const auto cluster = TRY(LocalCluster::start(spec, cancelled));
  std::vector<WorkerProcess> workers;
  for (int i = 0; i < counts.workers; ++i) workers.push_back(TRY(start_worker_process(words, *cluster)));
  Outcomes<std::string> outcomes;
  {
    std::vector<std::jthread> listeners;
    for (int i = 0; i < counts.workers; ++i) {
      listeners.emplace_back([&, i] { outcomes.add(listen(*workers[i].lines, i, show, cancelled)); });
    }
  }
  auto outcome = outcomes.result();
  if (!outcome) set_log_level(LogLevel::kSilent);  // what ends with it is no news
  std::string told = TRY(std::move(outcome));
  for (const std::string& failure : outcomes.failures()) log_warning("{}; the others have done its work", failure);
  for (WorkerProcess& worker : workers) (void)worker.process.wait(kWorkerEndTimeout);
  TRY(cluster->wait());
  return told;
}

int WorkerVoice::end(const Result<std::string>& outcome) {
  if (outcome) {
    say("done", *outcome);
    return kExitDone;
  }
  const Error& error = outcome.error();
  say(error.code == Code::kInvalid ? "invalid" : "failed", escape_controls(error.message));  // a line
  return exit_code(error.code);
}

void WorkerVoice::say(std::string_view word, std::string_view rest) {
  MutexLock lock(mutex_);
  fmt::print("{} {}\n", word, rest);
  std::fflush(stdout);
}

}  // namespace pscloud

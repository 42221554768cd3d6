#include "cli/local/worker_process.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
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

constexpr milliseconds kWorkerSilenceMax{std::chrono::hours(24 * 365)};  // while the job goes on
constexpr milliseconds kWorkerEndTimeout{20000};
constexpr milliseconds kStragglersTimeout{10000};  // once the job is over

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

// When to wait no longer for workers that do not end. A process may stand still for ever, in a read or because it was
// stopped, while the others have done its work.
class LastCall {
 public:
  explicit LastCall(const LocalCluster& cluster) : cluster_(cluster) {}

  // One knows how all went.
  void begin() EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    if (!since_) since_ = std::chrono::steady_clock::now();
  }
  bool is_over() EXCLUDES(mutex_) {
    if (cluster_.has_lost_servers()) begin();
    MutexLock lock(mutex_);
    return since_ && std::chrono::steady_clock::now() - *since_ >= kStragglersTimeout;
  }

 private:
  const LocalCluster& cluster_;
  Mutex mutex_;
  std::optional<std::chrono::steady_clock::time_point> since_ GUARDED_BY(mutex_);
};

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
  LastCall last_call(*cluster);
  std::vector<char> stuck(counts.workers, 0);  // each is its listener's
  {
    std::vector<std::jthread> listeners;
    for (int i = 0; i < counts.workers; ++i) {
      listeners.emplace_back([&, i] {
        const auto given_up = [&] {
          stuck[i] = last_call.is_over() ? 1 : 0;
          return stuck[i] != 0 || cancelled();
        };
        auto told = listen(*workers[i].lines, i, show, given_up);
        if (told) last_call.begin();
        if (stuck[i] == 0) outcomes.add(std::move(told));
      });
    }
  }
  if (std::ranges::count(stuck, 0) == 0) outcomes.add(job_failed("the job is over, but no worker process has ended"));
  auto outcome = outcomes.result();
  if (!outcome) set_log_level(LogLevel::kSilent);  // what ends with it is no news
  std::string told = TRY(std::move(outcome));
  for (const std::string& failure : outcomes.failures()) log_warning("{}; the others have done its work", failure);
  for (int i = 0; i < counts.workers; ++i) {
    if (stuck[i] != 0) {
      log_warning("worker process {} does not end; the others have done its work", i);
    } else {
      (void)workers[i].process.wait(kWorkerEndTimeout);
    }
  }
  workers.clear();  // ends those that have not
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

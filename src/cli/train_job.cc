#include "cli/train_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <thread>

#include "base/log.h"
#include "base/mutex.h"
#include "cli/child_process.h"
#include "cli/local_workers.h"
#include "cli/train_report.h"
#include "io/file_pattern.h"
#include "learn/config.pb.h"

namespace pscloud {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kWorkerSilenceMax{std::chrono::hours(24 * 365)};  // a worker ends by its own deadlines
constexpr milliseconds kWorkerEndTimeout{20000};

// What several workers end with: each that ends well knows how all went, so one of them is enough.
class Outcomes {
 public:
  void add(Result<OnlineProgress> one) EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    if (!one) failures_.push_back(one.error().message);
    const bool better = !outcome_ || (one && (!*outcome_ || one->seconds > (*outcome_)->seconds));
    if (better) outcome_ = std::move(one);
  }
  Result<OnlineProgress> result() const EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    if (!outcome_) return unavailable("no worker has ended");
    return *outcome_;
  }
  std::vector<std::string> failures() const EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return failures_;
  }

 private:
  mutable Mutex mutex_;
  std::optional<Result<OnlineProgress>> outcome_ GUARDED_BY(mutex_);
  std::vector<std::string> failures_ GUARDED_BY(mutex_);
};

Result<OnlineProgress> train_as_worker(const OnlineSettings& settings, const NodeOptions& options,
                                       const ShowProgress& show, const Cancelled& cancelled) {
  const auto store = make_local_store();
  WatchedStore files = until_cancelled(*store, cancelled);
  const auto worker = TRY(Worker::join(options));
  OnlineTrainer trainer(*worker, files, settings, show);
  auto progress = trainer.run();
  // Within one process nobody needs to hear of a death.
  if (progress || options.local) TRY(worker->leave());
  return progress;
}

// A worker process and what it tells.
struct WorkerProcess {
  ChildProcess process;
  std::unique_ptr<LineChannel> lines;
};

Result<WorkerProcess> start_worker_process(const TrainJob& job, const LocalCluster& cluster) {
  std::vector<std::string> arguments{"train", job.config.file, "--as-worker", "--threads", std::to_string(job.threads)};
  for (const std::string& one : job.config.assignments) arguments.insert(arguments.end(), {"--set", one});
  if (job.config.strict) arguments.emplace_back("--strict");
  auto [ours, theirs] = TRY(LineChannel::make_pair());
  auto process = TRY(ChildProcess::start(arguments, cluster.worker_environment(), std::move(theirs)));
  return WorkerProcess{std::move(process), std::make_unique<LineChannel>(std::move(ours))};
}

// Until it says how it ended.
Result<OnlineProgress> listen(LineChannel& lines, int number, const ShowProgress& show, const Cancelled& cancelled) {
  while (true) {
    auto line = lines.read_line(kWorkerSilenceMax, cancelled);
    if (!line) return job_failed("worker process {}: {}", number, line.error().message);
    const size_t space = line->find(' ');
    const std::string word = line->substr(0, space);
    const std::string rest = space == std::string::npos ? "" : line->substr(space + 1);
    if (word == "progress") {
      show(TRY(decode_progress(rest)));
    } else if (word == "done") {
      return decode_progress(rest);
    } else {
      return Error{word == "invalid" ? Code::kInvalid : Code::kFailed, rest};
    }
  }
}

}  // namespace

Result<OnlineSettings> train_settings(const TrainJob& job) {
  PS::LM::Config config;
  TRY(read_config(job.config, config));
  OnlineSettings settings = TRY(online_settings(config).at(job.config.file));
  settings.strict = job.config.strict;
  return settings;
}

Result<OnlineProgress> join_train_job(const OnlineSettings& settings, const NodeOptions& options, int threads,
                                      const ShowProgress& show, const Cancelled& cancelled) {
  Outcomes outcomes;
  {
    std::vector<std::jthread> trainers;
    for (int i = 0; i < threads; ++i) {
      trainers.emplace_back([&] { outcomes.add(train_as_worker(settings, options, show, cancelled)); });
    }
  }
  return outcomes.result();
}

Result<OnlineProgress> run_train_job(const TrainJob& job, const ShowProgress& show, const Cancelled& cancelled) {
  const OnlineSettings settings = TRY(train_settings(job));
  TRY(find_files(*make_local_store(), settings.files));  // or there is nothing to start for
  LocalClusterSpec spec;
  const bool embedded = job.servers == 0;
  spec.servers = std::max(1, job.servers);
  spec.workers = embedded ? job.threads : job.workers * job.threads;
  spec.transport.name = embedded ? "inproc" : "auto";
  const auto cluster = TRY(LocalCluster::start(spec, cancelled));
  if (embedded) {
    const OnlineProgress progress =
        TRY(join_train_job(settings, cluster->worker_options(), job.threads, show, cancelled));
    TRY(cluster->wait());
    return progress;
  }
  std::vector<WorkerProcess> workers;
  for (int i = 0; i < job.workers; ++i) workers.push_back(TRY(start_worker_process(job, *cluster)));
  Outcomes outcomes;
  {
    std::vector<std::jthread> listeners;
    for (int i = 0; i < job.workers; ++i) {
      listeners.emplace_back([&, i] { outcomes.add(listen(*workers[i].lines, i, show, cancelled)); });
    }
  }
  const auto outcome = outcomes.result();
  if (!outcome) set_log_level(LogLevel::kSilent);  // what ends with it is no news
  const OnlineProgress progress = TRY(outcome);
  for (const std::string& failure : outcomes.failures()) log_warning("{}; the others have done its work", failure);
  for (WorkerProcess& worker : workers) (void)worker.process.wait(kWorkerEndTimeout);
  TRY(cluster->wait());
  return progress;
}

}  // namespace pscloud

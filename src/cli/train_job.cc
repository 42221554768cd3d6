#include "cli/train_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <thread>

#include "base/log.h"
#include "cli/child_process.h"
#include "cli/local_workers.h"
#include "cli/train_report.h"
#include "io/file_pattern.h"
#include "learn/checkpoint_files.h"
#include "learn/config.pb.h"

namespace pscloud {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kWorkerSilenceMax{std::chrono::hours(24 * 365)};  // a worker ends by its own deadlines
constexpr milliseconds kWorkerEndTimeout{20000};

std::function<Result<TrainProgress>(Worker&)> training(const TrainSettings& settings, const ShowProgress& show,
                                                       const Cancelled& cancelled) {
  return [&](Worker& worker) -> Result<TrainProgress> {
    const auto store = make_file_store(cancelled);
    WatchedStore files = until_cancelled(*store, cancelled);
    if (const auto* batch = std::get_if<BatchSettings>(&settings)) {
      return TRY(BatchTrainer(worker, files, *batch, show, cancelled).run());
    }
    return TRY(OnlineTrainer(worker, files, std::get<OnlineSettings>(settings), show).run());
  };
}

const std::vector<std::string>& training_files(const TrainSettings& settings) {
  return std::visit([](const auto& one) -> const auto& { return one.files; }, settings);
}

// A worker process and what it tells.
struct WorkerProcess {
  ChildProcess process;
  std::unique_ptr<LineChannel> lines;
};

Result<WorkerProcess> start_worker_process(const TrainJob& job, const LocalCluster& cluster) {
  std::vector<std::string> arguments{"train", "--as-worker", "--threads", std::to_string(job.threads)};
  std::ranges::copy(words_of(job.config), std::back_inserter(arguments));
  if (job.resume) arguments.emplace_back("--resume");
  auto [ours, theirs] = TRY(LineChannel::make_pair());
  auto process = TRY(ChildProcess::start(arguments, cluster.worker_environment(), std::move(theirs)));
  return WorkerProcess{std::move(process), std::make_unique<LineChannel>(std::move(ours))};
}

// Until it says how it ended.
Result<TrainProgress> listen(LineChannel& lines, int number, const ShowProgress& show, const Cancelled& cancelled) {
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

Result<TrainSettings> train_settings(const TrainJob& job) {
  PS::LM::Config config;
  TRY(read_config(job.config, config));
  TrainSettings settings;
  if (config.has_darlin()) {
    settings = TRY(batch_settings(config).at(job.config.file));
    if (job.resume) return invalid("{}: --resume: batch training has no checkpoints yet", job.config.file);
  } else {
    OnlineSettings online = TRY(online_settings(config).at(job.config.file));
    online.checkpoint.resume = job.resume;
    settings = std::move(online);
  }
  std::visit([&](auto& one) { one.strict = job.config.strict; }, settings);
  return settings;
}

Result<TrainProgress> join_train_job(const TrainSettings& settings, const NodeOptions& options, int threads,
                                     const ShowProgress& show, const Cancelled& cancelled) {
  return join_workers(options, threads, training(settings, show, cancelled));
}

Result<TrainProgress> run_train_job(const TrainJob& job, const TrainSettings& settings, const ShowProgress& show,
                                    const Cancelled& cancelled) {
  // Or there is nothing to start for.
  const auto store = make_file_store(cancelled);
  TRY(find_files(*store, training_files(settings)));
  if (const auto* online = std::get_if<OnlineSettings>(&settings)) {
    TRY(check_checkpoints_before_start(*store, online->checkpoint));
  }
  if (job.servers == 0) return run_local_workers(job.threads, cancelled, training(settings, show, cancelled));
  LocalClusterSpec spec;
  spec.servers = job.servers;
  spec.workers = job.workers * job.threads;
  const auto cluster = TRY(LocalCluster::start(spec, cancelled));
  std::vector<WorkerProcess> workers;
  for (int i = 0; i < job.workers; ++i) workers.push_back(TRY(start_worker_process(job, *cluster)));
  Outcomes<TrainProgress> outcomes;
  {
    std::vector<std::jthread> listeners;
    for (int i = 0; i < job.workers; ++i) {
      listeners.emplace_back([&, i] { outcomes.add(listen(*workers[i].lines, i, show, cancelled)); });
    }
  }
  const auto outcome = outcomes.result();
  if (!outcome) set_log_level(LogLevel::kSilent);  // what ends with it is no news
  const TrainProgress progress = TRY(outcome);
  for (const std::string& failure : outcomes.failures()) log_warning("{}; the others have done its work", failure);
  for (WorkerProcess& worker : workers) (void)worker.process.wait(kWorkerEndTimeout);
  TRY(cluster->wait());
  return progress;
}

}  // namespace pscloud

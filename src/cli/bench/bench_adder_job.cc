#include "cli/bench/bench_adder_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <optional>
#include <thread>

#include "cli/bench/machine_limits.h"
#include "cli/bench/quantiles.h"
#include "cli/bench/raw_socket.h"
#include "cli/progress.h"

namespace pscloud {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kSilenceMax{180000};  // a worker's own deadlines end before

// A worker of the job and how to lead it. Ends when `lines` does, whatever it is.
struct LedWorker {
  std::jthread thread;  // one of these two
  std::optional<ChildProcess> process;
  LineChannel lines;
};

class AdderJob {
 public:
  AdderJob(const AdderFlags& flags, const Cancelled& cancelled)
      : flags_(flags), cancelled_(cancelled), target_(bytes()), source_(bytes()) {}

  Result<AdderOutcome> run();

 private:
  size_t bytes() const { return flags_.plan.rows() * sizeof(float); }
  bool own_processes() const { return flags_.cluster.transport.own_processes(); }
  Result<> start_workers();
  Result<std::string> hear(LedWorker& worker);
  Result<std::vector<std::vector<AdderSample>>> lead(const char* order, int count);
  Result<> run_round(int count);
  Result<> measure_limits();
  Result<> finish();

  const AdderFlags& flags_;
  const Cancelled& cancelled_;
  LimitBuffer target_, source_;
  std::optional<RawSocketPeer> peer_;
  std::vector<double> poll_ms_, threads_ms_;
  std::unique_ptr<LocalCluster> cluster_;
  std::vector<LedWorker> workers_;  // end before the cluster
  AdderOutcome outcome_;
};

Result<> AdderJob::start_workers() {
  std::vector<std::string> arguments{"bench",
                                     "adder",
                                     "--as-worker",
                                     "--size-mb",
                                     fmt::to_string(flags_.plan.size_mb),
                                     "--mode",
                                     flags_.plan.sync ? "sync" : "async"};
  if (flags_.plan.lent) arguments.emplace_back("--lent");
  for (int i = 0; i < flags_.cluster.workers; ++i) {
    auto [ours, theirs] = TRY(LineChannel::make_pair());
    LedWorker worker{{}, {}, LineChannel(std::move(ours))};
    if (own_processes()) {
      worker.process.emplace(TRY(ChildProcess::start(arguments, cluster_->worker_environment(), std::move(theirs))));
    } else {
      worker.thread = std::jthread([this, lines = LineChannel(std::move(theirs))]() mutable {
        (void)serve_adder_worker(cluster_->worker_options(), flags_.plan, std::move(lines));  // it told its leader
      });
    }
    workers_.push_back(std::move(worker));
  }
  for (LedWorker& worker : workers_) {
    const std::string line = TRY(hear(worker));
    if (!line.starts_with("ready ")) return corrupt("a worker said \"{}\"", line);
    outcome_.transport = line.substr(std::string_view("ready ").size());
    // Else the figures would be those of something else, beside limits that are not theirs.
    if (flags_.cluster.transport.shared_memory() && own_processes() && outcome_.transport != "shm") {
      return job_failed("a worker took {} in place of shared memory: --transport {} measures that", outcome_.transport,
                        outcome_.transport);
    }
  }
  return {};
}

Result<std::string> AdderJob::hear(LedWorker& worker) {
  auto line = worker.lines.read_line(kSilenceMax, cancelled_);
  if (!line) return job_failed("a worker is lost: {}", line.error().message);
  return decode_line(*std::move(line));
}

// Lets every worker do `order` so many times.
Result<std::vector<std::vector<AdderSample>>> AdderJob::lead(const char* order, int count) {
  for (LedWorker& worker : workers_) TRY(worker.lines.write_line(fmt::format("{} {}", order, count)));
  std::vector<std::vector<AdderSample>> samples(workers_.size());
  for (int i = 0; i < count; ++i) {
    for (size_t w = 0; w < workers_.size(); ++w) samples[w].push_back(TRY(decode_sample(TRY(hear(workers_[w])))));
  }
  return samples;
}

Result<> AdderJob::run_round(int count) {
  const double servers_before = cluster_->server_cpu_s();
  const double all_before = ChildProcess::cpu_s_of(0);
  const auto samples = TRY(lead("run", count));
  const double servers_s = cluster_->server_cpu_s() - servers_before;
  double workers_s = 0;
  for (size_t w = 0; w < samples.size(); ++w) {
    auto& all = outcome_.samples[w];
    all.insert(all.end(), samples[w].begin(), samples[w].end());
    for (const AdderSample& sample : samples[w]) workers_s += sample.cpu_s;
  }
  outcome_.cpu_server_s += servers_s;  // NaN if they are threads of ours
  outcome_.cpu_worker_s += own_processes() ? workers_s : std::numeric_limits<double>::quiet_NaN();
  outcome_.cpu_s += own_processes() ? workers_s + servers_s : ChildProcess::cpu_s_of(0) - all_before;
  return {};
}

// Each is the work of one iteration: every worker's bytes.
Result<> AdderJob::measure_limits() {
  const int workers = flags_.cluster.workers;
  const auto of_all = [&](auto&& measure) {
    double sum = 0;
    for (int i = 0; i < workers; ++i) sum += measure();
    return sum;
  };
  for (int i = 0; i < kLimitsEachRound; ++i) {
    outcome_.add_ms.push_back(of_all([&] { return measure_add_ms(target_.floats(), source_.floats(), 1); }));
    outcome_.add2_ms.push_back(of_all([&] { return measure_add_ms(target_.floats(), source_.floats(), 2); }));
    outcome_.copy_ms.push_back(of_all([&] { return measure_copy_ms(target_.floats(), source_.floats()); }));
    if (!peer_) continue;
    double by_poll = 0, by_threads = 0;
    for (int w = 0; w < workers; ++w) {
      by_poll += TRY(peer_->exchange_ms(source_.bytes(), target_.bytes(), Duplex::kPoll));
      by_threads += TRY(peer_->exchange_ms(source_.bytes(), target_.bytes(), Duplex::kThreads));
    }
    poll_ms_.push_back(by_poll);
    threads_ms_.push_back(by_threads);
  }
  return {};
}

Result<> AdderJob::finish() {
  for (LedWorker& worker : workers_) TRY(worker.lines.write_line("finish"));
  for (LedWorker& worker : workers_) outcome_.values_ok &= TRY(hear(worker)) == "values ok";
  for (LedWorker& worker : workers_) {
    if (worker.process) TRY(worker.process->wait(milliseconds(20000)).at("a worker"));
  }
  return cluster_->wait();
}

Result<AdderOutcome> AdderJob::run() {
  ProgressLine progress;
  progress.show("starting");
  const std::string& transport = flags_.cluster.transport.name;
  if (transport == "tcp" || transport == "tls") {
    peer_.emplace(TRY(RawSocketPeer::start(RawSocketKind::kTcp)));
    TRY(peer_->exchange_ms(source_.bytes(), target_.bytes(), Duplex::kPoll));  // warms up
  }
  cluster_ = TRY(LocalCluster::start(flags_.cluster, cancelled_));
  TRY(start_workers());
  const bool apart = flags_.plan.sync && flags_.cluster.workers == 1;
  if (flags_.warmup > 0) TRY(lead("run", flags_.warmup));
  if (apart && flags_.warmup > 0) TRY(lead("apart", 1));

  outcome_.samples.resize(workers_.size());
  const int rounds = std::min(kAdderRounds, flags_.iters);
  for (int round = 0, done = 0; round < rounds; ++round) {
    const int count = (flags_.iters - done) / (rounds - round);
    TRY(run_round(count));
    done += count;
    if (apart) {
      const auto samples = TRY(lead("apart", count));
      outcome_.apart.insert(outcome_.apart.end(), samples.front().begin(), samples.front().end());
    }
    TRY(measure_limits());
    progress.show(fmt::format("{} of {} iterations", done, flags_.iters));
  }
  outcome_.socket_ms = quantile(poll_ms_, 0.5) < quantile(threads_ms_, 0.5) ? poll_ms_ : threads_ms_;
  TRY(finish());
  return outcome_;
}

}  // namespace

std::vector<double> AdderOutcome::all(double AdderSample::*field) const {
  std::vector<double> values;
  for (const auto& worker : samples) {
    for (const AdderSample& sample : worker) values.push_back(sample.*field);
  }
  return values;
}

Result<AdderOutcome> run_adder_job(const AdderFlags& flags, const Cancelled& cancelled) {
  return AdderJob(flags, cancelled).run();
}

}  // namespace pscloud

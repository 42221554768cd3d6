#include "cli/bench_adder.h"

#include <fmt/core.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/json.h"
#include "base/log.h"
#include "base/mutex.h"
#include "cli/exit_code.h"
#include "net/certificate.h"
#include "pscloud/environment.h"
#include "pscloud/worker.h"

namespace pscloud {
namespace {

using Milliseconds = std::chrono::duration<double, std::milli>;

constexpr const char* kAbout = R"(Starts a scheduler, servers and workers as threads of this process and runs the
adder on them. In sync mode every value of every pull is checked, in async mode
every value after the last one: it must be iterations x workers.

  pscloud bench adder --servers 2 --workers 2 --size-mb 100
  pscloud bench adder --transport tls --json

With --join this process is one worker of a job that runs elsewhere:
PSCLOUD_SCHEDULER and the rest of the environment say where.)";

struct Flags {
  int servers = 1;
  int workers = 1;
  double size_mb = 100;
  int iters = 20;
  std::string mode = "sync";
  std::string transport = "inproc";
  bool join = false;
  bool json = false;
};

struct WorkerRun {
  std::vector<double> push_ms, pull_ms, iteration_ms;
  bool values_ok = true;
};

// One worker's part. The first iteration warms up and is not timed.
Result<WorkerRun> run_worker(const NodeOptions& options, const Flags& flags) {
  const auto worker = TRY(Worker::join(options));
  const auto rows = static_cast<uint64_t>(std::max(1.0, flags.size_mb * 1e6 / sizeof(float)));
  TableSpec spec;
  spec.name = "adder";
  spec.kind = TableKind::kDense;
  spec.rows = rows;
  if (flags.mode == "sync") spec.consistency = Consistency::bsp();
  const Table table = TRY(worker->create_table(spec));
  const std::vector<float> ones(rows, 1.0f);
  std::vector<float> sums(rows);
  const auto all_are = [&](float value) { return std::ranges::all_of(sums, [&](float sum) { return sum == value; }); };

  TRY(worker->barrier());
  const int workers = worker->workers();
  WorkerRun run;
  for (int i = 0; i <= flags.iters; ++i) {
    const auto start = std::chrono::steady_clock::now();
    TRY(worker->push_rows(table, 0, ones).wait());
    if (flags.mode == "sync") TRY(worker->clock().wait());
    const auto pushed = std::chrono::steady_clock::now();
    TRY(worker->pull_rows(table, 0, sums).wait());
    const auto pulled = std::chrono::steady_clock::now();
    if (flags.mode == "sync") run.values_ok &= all_are(static_cast<float>((i + 1) * workers));
    if (i == 0) continue;
    run.push_ms.push_back(Milliseconds(pushed - start).count());
    run.pull_ms.push_back(Milliseconds(pulled - pushed).count());
    run.iteration_ms.push_back(Milliseconds(pulled - start).count());
  }
  TRY(worker->barrier());
  TRY(worker->pull_rows(table, 0, sums).wait());
  run.values_ok &= all_are(static_cast<float>((flags.iters + 1) * workers));
  TRY(worker->leave());
  return run;
}

// A folder with the certificates of a cluster that lasts as long as this.
class ScratchCertificates {
 public:
  ScratchCertificates() {
    std::string pattern = (std::filesystem::temp_directory_path() / "pscloud-adder-XXXXXX").string();
    if (mkdtemp(pattern.data()) != nullptr) folder_ = pattern;
  }
  ~ScratchCertificates() {
    std::error_code ignored;
    if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
  }
  ScratchCertificates(const ScratchCertificates&) = delete;
  ScratchCertificates& operator=(const ScratchCertificates&) = delete;

  Result<std::string> issue(Role role) {
    if (folder_.empty())
      return unavailable("cannot make a folder for certificates in {}",
                         std::filesystem::temp_directory_path().string());
    if (!made_) TRY(make_ca(folder_ + "/ca", "adder", std::chrono::hours(24)));
    made_ = true;
    const std::string out = fmt::format("{}/{}", folder_, role_name(role));
    if (!std::filesystem::exists(out)) {
      TRY(issue_certificate(folder_ + "/ca", out, role, std::string(role_name(role)), std::chrono::hours(24)));
    }
    return out;
  }

 private:
  std::string folder_;
  bool made_ = false;
};

Result<std::vector<WorkerRun>> run_job(const Flags& flags) {
  ScratchCertificates certificates;
  NodeOptions common;
  common.servers = flags.servers;
  common.workers = flags.workers;
  common.job = "adder";
  common.memory_max = uint64_t{64} << 30;
  common.scheduler = "127.0.0.1:0";
  common.insecure = flags.transport == "tcp";
  if (flags.transport == "inproc") {
    common.local = make_local_network();
    common.scheduler = "inproc:scheduler";
  }
  const auto as = [&](Role role) -> Result<NodeOptions> {
    NodeOptions options = common;
    options.role = role;
    if (flags.transport == "tls") options.tls_dir = TRY(certificates.issue(role));
    return options;
  };
  const auto scheduler = TRY(Node::start(TRY(as(Role::kScheduler))));
  common.scheduler = scheduler->address();
  std::vector<std::unique_ptr<Node>> servers;
  for (int i = 0; i < flags.servers; ++i) servers.push_back(TRY(Node::start(TRY(as(Role::kServer)))));
  const NodeOptions worker_options = TRY(as(Role::kWorker));

  Mutex mutex;
  Result<> outcome;
  std::vector<WorkerRun> runs;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < flags.workers; ++i) {
      threads.emplace_back([&] {
        auto run = run_worker(worker_options, flags);
        MutexLock lock(mutex);
        if (run) runs.push_back(std::move(*run));
        if (!run && outcome) outcome = run.error();
      });
    }
  }
  TRY(std::move(outcome));
  for (auto& server : servers) TRY(server->wait());
  TRY(scheduler->wait());
  return runs;
}

double quantile(std::vector<double> values, double q) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  return values[std::min(values.size() - 1, static_cast<size_t>(q * static_cast<double>(values.size())))];
}

int report(const Flags& flags, const std::vector<WorkerRun>& runs) {
  WorkerRun all;
  for (const WorkerRun& run : runs) {
    all.values_ok &= run.values_ok;
    all.push_ms.insert(all.push_ms.end(), run.push_ms.begin(), run.push_ms.end());
    all.pull_ms.insert(all.pull_ms.end(), run.pull_ms.begin(), run.pull_ms.end());
    all.iteration_ms.insert(all.iteration_ms.end(), run.iteration_ms.begin(), run.iteration_ms.end());
  }
  const double p50 = quantile(all.iteration_ms, 0.5);
  // Both directions, of all workers.
  const double gb_per_s = 2 * flags.size_mb * 1e-3 * static_cast<double>(runs.size()) / (p50 * 1e-3);
  if (flags.json) {
    JsonWriter json;
    json.begin_object().field("servers", flags.servers).field("workers", flags.workers).field("size_mb", flags.size_mb);
    json.field("iters", flags.iters).field("mode", flags.mode).field("transport", flags.transport);
    json.field("ms_p50", p50)
        .field("ms_p95", quantile(all.iteration_ms, 0.95))
        .field("ms_p99", quantile(all.iteration_ms, 0.99));
    json.field("push_ms_p50", quantile(all.push_ms, 0.5)).field("pull_ms_p50", quantile(all.pull_ms, 0.5));
    json.field("gb_per_s", gb_per_s).field("values_ok", all.values_ok).end_object();
    fmt::print("{}\n", json.text());
  } else {
    fmt::print("{} servers, {} workers, {} MB, {} iterations, {}, over {}\n", flags.servers, flags.workers,
               flags.size_mb, flags.iters, flags.mode, flags.transport);
    fmt::print("iteration   p50 {:8.2f} ms   p95 {:8.2f} ms   p99 {:8.2f} ms\n", p50, quantile(all.iteration_ms, 0.95),
               quantile(all.iteration_ms, 0.99));
    fmt::print("push        p50 {:8.2f} ms\npull        p50 {:8.2f} ms\n", quantile(all.push_ms, 0.5),
               quantile(all.pull_ms, 0.5));
    fmt::print("rate        {:.2f} GB/s, both directions\nvalues      {}\n", gb_per_s,
               all.values_ok ? "all right" : "WRONG");
  }
  if (all.values_ok) return kExitDone;
  fmt::print(stderr, "pscloud: some values are not iterations x workers\n");
  return kExitFailed;
}

int run(Flags flags) {
  set_log_level(LogLevel::kWarning);
  if (!flags.join) {
    const auto runs = run_job(flags);
    return runs ? report(flags, *runs) : fail(runs.error());
  }
  NodeOptions options;
  if (auto applied = apply_environment(process_environment(), options); !applied) return fail(applied.error());
  flags.transport = options.tls_dir.empty() ? "tcp" : "tls";
  auto one = run_worker(options, flags);
  return one ? report(flags, {std::move(*one)}) : fail(one.error());
}

}  // namespace

void add_bench_adder(CLI::App& verb, Action& action) {
  const auto flags = std::make_shared<Flags>();
  verb.add_option("--servers,--ps", flags->servers, "[1]")->type_name("N")->check(CLI::Range(1, 64));
  verb.add_option("--workers", flags->workers, "[1]")->type_name("N")->check(CLI::Range(1, 64));
  verb.add_option("--size-mb", flags->size_mb, "of the tensor [100]")
      ->type_name("MB")
      ->check(CLI::Range(0.001, 100000.0));
  verb.add_option("--iters", flags->iters, "[20]")->type_name("N")->check(CLI::Range(1, 1000000));
  verb.add_option("--mode", flags->mode, "sync or async [sync]")->check(CLI::IsMember({"sync", "async"}));
  verb.add_option("--transport", flags->transport, "inproc, tcp or tls [inproc]")
      ->check(CLI::IsMember({"inproc", "tcp", "tls"}));
  verb.add_flag("--join", flags->join, "be a worker of a running job");
  verb.add_flag("--json", flags->json, "for programs");
  verb.footer(kAbout);
  verb.callback([flags, &action] { action = [flags] { return run(*flags); }; });
}

}  // namespace pscloud

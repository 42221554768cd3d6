#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "cli/bench/bench_adder_gather.h"
#include "cli/bench/bench_adder_job.h"
#include "cli/bench/bench_adder_launch.h"
#include "cli/bench/bench_adder_peers.h"
#include "cli/bench/bench_adder_report.h"
#include "cli/bench/bench_adder_steps.h"
#include "cli/bench/bench_adder_task.h"
#include "cli/bench/bench_flags.h"
#include "cli/bench/bench_verb.h"
#include "cli/exit_code.h"
#include "cli/interruption.h"
#include "pscloud/environment.h"

namespace pscloud {
namespace {

constexpr const char* kAdderAbout = R"(Each worker pushes a tensor of ones, the servers add it to theirs, each worker
pulls the sum. Starts the scheduler here, and servers and workers as processes
of their own on this machine, or with --on all of them on a cluster; all are
gone when it ends.

  pscloud bench adder
  pscloud bench adder --servers 2 --workers 2 --transport tls --json
  pscloud bench adder --iters 1000 --tensorboard runs/adder
  pscloud bench adder --on cluster.json --ps 4 --workers 4 --name run2
  pscloud bench adder --on cluster.json --variant all

sync   every value that comes back must be iterations x workers, and is looked
       at. Several workers: push, pull, with a barrier behind each. One: push
       and pull in one request, and, in turn, apart, to time each by itself
async  push and pull in one request, nobody waits for others; the values are
       looked at in the end

Between rounds it measures what the same bytes cost at least on this machine,
so that noise hits both: an add in place by one core and by two, a copy, and
for tcp and tls the same bytes both ways through a plain socket between two
processes. ratio_to_limit says how often that limit fits into an iteration: the
socket for tcp and tls; else the add, on two cores if servers have two threads
or more. Warm-up, starting and looking at values are not timed. A MB has
1,000,000 bytes; rates count both directions, of all workers.

With --on it is a run like those of `pscloud run` (docs/launch.md), and each
step of the first worker goes to the run's folder for TensorBoard as it comes.
The limits are measured where the first worker runs, and the socket goes from
there to the first server; all are of the busiest machine. --variant runs the
adders of TensorFlow, Ray and PyTorch there too, with the machines' own Python.
One that is not installed is named, and is no failure (docs/benchmarks.md).

With --join this process is one worker of a job that runs elsewhere:
PSCLOUD_SCHEDULER and the rest of the environment say where. It measures only
itself, no limits. Start as many as the job waits for, with the same flags.

Exit code 1 if a value was wrong.)";

constexpr const char* kCluster = "On a cluster";  // a group of flags

struct AdderCommand {
  AdderFlags adder;
  AdderLaunch launch;
  std::string mode = "sync";
  bool join = false;
  bool worker = false;       // a child of this command
  bool task = false;         // of a run that this command has launched
  std::string cluster_flag;  // one of those for a cluster that was given; empty: none was
  bool json = false;
};

Result<> check(const AdderCommand& flags) {
  TRY(check_transport(flags.adder.cluster.transport));
  // A float counts by ones up to here.
  constexpr double kExactMax = 1 << 24;
  const double pushes = 2.0 * flags.adder.iters + flags.adder.warmup + 1;
  if (pushes * flags.adder.cluster.workers > kExactMax) {
    return invalid("--iters {} with {} workers counts higher than a float can: choose fewer", flags.adder.iters,
                   flags.adder.cluster.workers);
  }
  return {};
}

Result<NodeOptions> options_from_environment() {
  NodeOptions options;
  TRY(apply_environment(process_environment(), options));
  return options;
}

// One worker of a job that somebody else runs.
Result<AdderOutcome> run_joined(AdderCommand& flags) {
  const NodeOptions options = TRY(options_from_environment());
  const auto worker = TRY(AdderWorker::join(options, flags.adder.plan));
  flags.adder.cluster.workers = worker->workers();
  flags.adder.cluster.servers = worker->servers();
  for (int i = 0; i < flags.adder.warmup; ++i) TRY(worker->iterate());
  AdderOutcome outcome;
  outcome.transport = worker->transport();
  outcome.samples.resize(1);
  for (int i = 0; i < flags.adder.iters; ++i) outcome.samples[0].push_back(TRY(worker->iterate()));
  for (const AdderSample& sample : outcome.samples[0]) outcome.cpu_worker_s += sample.cpu_s;
  outcome.cpu_s = outcome.cpu_worker_s;
  outcome.cpu_server_s = std::numeric_limits<double>::quiet_NaN();
  outcome.values_ok = TRY(worker->finish());
  return outcome;
}

int run_worker(const AdderCommand& flags) {
  set_log_name("worker");
  const auto options = options_from_environment();
  if (!options) return fail(options.error());
  // Its leader says what went wrong.
  return serve_adder_worker(*options, flags.adder.plan, LineChannel(Fd(STDIN_FILENO))) ? kExitDone : kExitFailed;
}

// A server or a worker, as its launcher's words in the environment say.
int run_adder_task(const AdderCommand& flags) {
  const auto options = options_from_environment();
  if (!options) return fail(options.error());
  set_log_name(std::string(role_name(options->role)));
  if (options->role == Role::kServer) {
    const std::string workers = process_environment()("PSCLOUD_WORKER_ADDRESSES").value_or("");
    return run_adder_server_task(*options, flags.adder.plan, workers.substr(0, workers.find(',')));
  }
  const auto done = run_adder_worker_task(*options, flags.adder, [](const std::string& line) {
    fmt::print("{}{}\n", kAdderLine, line);
    std::fflush(stdout);
  });
  return done ? kExitDone : fail(done.error());
}

// In the way of a cluster, for who has said something that only this has.
bool wants_launch(const AdderCommand& flags) {
  return !flags.launch.run.on.empty() || flags.launch.variants != AdderLaunch().variants;
}

int launch_command(AdderCommand& flags) {
  if (flags.launch.run.on.empty()) flags.launch.run.on = "local";
  if (flags.join)
    return fail_usage("--join is one worker: it cannot launch", "`pscloud bench adder --help` tells more");
  if (!flags.adder.cluster.transport.own_processes()) {
    return fail_usage("--on starts processes: not threads, and none that talk by inproc",
                      "`pscloud bench adder --help` tells more");
  }
  flags.launch.json = flags.json;
  return launch_adder(flags.adder, flags.launch);
}

Result<> write_steps(const AdderFlags& flags, const AdderOutcome& outcome, double start_s) {
  if (flags.tensorboard.empty()) return {};
  auto steps = TRY(AdderSteps::create(flags, flags.tensorboard, start_s));
  return steps.write_all(outcome, start_s);
}

int report(const AdderCommand& flags, const AdderOutcome& outcome, double start_s) {
  if (const auto written = write_steps(flags.adder, outcome, start_s); !written) return fail(written.error());
  fmt::print("{}", flags.json ? adder_json(flags.adder, outcome) + "\n" : adder_text(flags.adder, outcome));
  if (outcome.values_ok) return kExitDone;
  fmt::print(stderr, "pscloud: some values are not iterations x workers\n");
  return kExitFailed;
}

int run_adder_command(AdderCommand flags) {
  set_log_level(LogLevel::kWarning);
  flags.adder.plan.sync = flags.mode == "sync";
  flags.adder.plan.lent = flags.adder.cluster.transport.lent;
  if (flags.worker) return run_worker(flags);
  if (flags.task) return run_adder_task(flags);
  if (const auto checked = check(flags); !checked) return fail(checked.error());
  if (wants_launch(flags)) return launch_command(flags);
  if (!flags.cluster_flag.empty()) {
    return fail_usage(fmt::format("{} is for a run on a cluster: it needs --on", flags.cluster_flag),
                      "`pscloud bench adder --help` tells more");
  }
  const double start_s = unix_s_now();
  if (flags.join) {
    const auto outcome = run_joined(flags);
    return outcome ? report(flags, *outcome, start_s) : fail(outcome.error());
  }
  const Interruption interruption;
  const auto outcome = run_adder_job(flags.adder, interruption.cancelled());
  if (interruption.happened()) return fail_interrupted();
  return outcome ? report(flags, *outcome, start_s) : fail(outcome.error());
}

void add_launch_flags(CLI::App& verb, AdderLaunch& launch) {
  std::vector<std::string> variants{"pscloud", "all"};
  for (const AdderPeer& peer : adder_peers()) variants.emplace_back(peer.name);
  verb.add_option("--variant", launch.variants, "pscloud, tensorflow, ray, torch, some of them with commas, or all")
      ->type_name("NAMES")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::IsMember(variants).description(""))
      ->group(kCluster);
  verb.add_option("--python", launch.python, "of the machines, for the other systems [python3]")
      ->type_name("PROGRAM")
      ->group(kCluster);
  add_run_job_flags(verb, launch.run, kCluster);
  add_job_flags(verb, launch.job, kCluster);
  // Who waits for the result cannot go away, and all must be there for the sums to be known.
  for (const char* name : {"--detach", "--controller", "--linger", "--workers-min", "--logs-to", "--keep-cluster"}) {
    verb.remove_option(verb.get_option(name));
  }
}

}  // namespace

void add_bench_adder(CLI::App& verb, Action& action) {
  const auto flags = std::make_shared<AdderCommand>();
  AdderFlags& adder = flags->adder;
  add_number(verb, "--servers,--ps", adder.cluster.servers, 1, 64, "server processes [1]");
  add_number(verb, "--server-threads", adder.cluster.server_threads, 1, 64, "of each server [1]");
  add_number(verb, "--workers", adder.cluster.workers, 1, 64, "worker processes [1]");
  add_number(verb, "--size-mb", adder.plan.size_mb, 0.001, 100000.0, "of the tensor [100]", "MB");
  add_number(verb, "--iters", adder.iters, 1, 1000000, "timed iterations [100]");
  add_number(verb, "--warmup", adder.warmup, 0, 1000000, "iterations before these [3; others have their own]");
  add_choice(verb, "--mode", flags->mode, {"sync", "async"}, "sync or async [sync]", "MODE");
  add_transport_flags(verb, adder.cluster.transport, true);
  verb.add_option("--tensorboard", adder.tensorboard, "write each step for TensorBoard")->type_name("DIR");
  verb.add_flag("--join", flags->join, "be a worker of a running job");
  verb.add_flag("--json", flags->json, "for programs");
  verb.add_flag("--as-worker", flags->worker)->group("");
  verb.add_flag("--as-task", flags->task)->group("");
  add_launch_flags(verb, flags->launch);
  verb.footer(kAdderAbout);
  verb.callback([flags, &verb, &action] {
    flags->launch.warmup_given = verb.count("--warmup") > 0;
    const auto given = verb.get_options([](const CLI::Option* one) {
      return one->get_group() == kCluster && one->count() > 0 && one->get_name() != "--variant";
    });
    if (!given.empty()) flags->cluster_flag = given.front()->get_name();
    action = [flags] { return run_adder_command(*flags); };
  });
}

}  // namespace pscloud

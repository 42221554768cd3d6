#include "cli/train/place_flags.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <set>

#include "cli/exit_code.h"
#include "cli/local/local_workers.h"
#include "launch/cluster_file.h"

namespace pscloud {
namespace {

// Machines that were made for jobs (`pscloud cluster up`) cost the same whether they work or not.
void use_all_machines(PlaceFlags& flags) {
  const auto cluster = find_cluster(flags.launch.on);  // what is wrong with it is told where the job begins
  if (!cluster || cluster->cloud.empty()) return;
  std::set<std::string> machines;
  for (const Host& host : cluster->hosts) {
    if (host.is_for(TaskRole::kWorker)) machines.insert(host.name);
  }
  if (machines.size() < 2) return;
  flags.counts.workers = static_cast<int>(machines.size());
  say(fmt::format("{} workers, one for each machine of {} that is for workers (--workers says otherwise)",
                  machines.size(), cluster->cloud));
}

}  // namespace

void add_place_flags(CLI::App& verb, PlaceFlags& flags, const std::string& work) {
  verb.add_option("--servers", flags.counts.servers, "processes that hold the model [0: this one]")
      ->type_name("N")
      ->check(CLI::NonNegativeNumber);
  verb.add_option("--workers", flags.counts.workers,
                  fmt::format("processes that {}, with --servers [1; on machines of `cluster up` one for each]", work))
      ->type_name("N")
      ->check(CLI::PositiveNumber);
  verb.add_option("--threads", flags.counts.threads,
                  fmt::format("that {}: here [all cores], or in each worker process [1]", work))
      ->type_name("N")
      ->check(CLI::PositiveNumber);
  verb.add_flag("--as-worker", flags.as_worker)->group("");
  constexpr const char* kCluster = "On a cluster";
  add_run_job_flags(verb, flags.launch, kCluster);
  add_job_flags(verb, flags.job, kCluster);
}

std::optional<int> settle_place(PlaceFlags& flags, const std::string& verb) {
  const std::string hint = fmt::format("`pscloud {} --help` tells more", verb);
  if (flags.launch.on.empty() && !flags.launch.controller.empty()) flags.launch.on = "local";
  if (!flags.launches() && (flags.launch.plan || flags.launch.detach)) {
    return fail_usage(fmt::format("{} is for a cluster: it needs --on", flags.launch.plan ? "--plan" : "--detach"),
                      hint);
  }
  WorkerCounts& counts = flags.counts;
  if (flags.launches() && counts.servers == 0) counts.servers = 1;
  if (counts.threads == 0) counts.threads = counts.servers > 0 ? 1 : all_cores();
  if (counts.workers > 0 && counts.servers == 0) {
    return fail_usage("--workers are processes: they need --servers", hint);
  }
  if (counts.workers == 0 && flags.launches()) use_all_machines(flags);
  if (counts.workers == 0) counts.workers = 1;
  return std::nullopt;
}

}  // namespace pscloud

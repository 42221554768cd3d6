#include "engine/sim/sim.h"

#include <fmt/core.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>

#include "base/json.h"
#include "base/log.h"
#include "base/text.h"
#include "cli/exit_code.h"
#include "cli/verb.h"

namespace pscloud {
namespace {

constexpr const char* kSimAbout = R"(Runs whole clusters, the code that ships, in virtual time: each seed decides how
many nodes there are, what they do and what breaks. Checks after every step
that no push is lost or counts twice, that no read is staler than its table
allows, that clocks never go back, that every queue keeps its bound and that
every wait names whom it waits for. docs/simulator.md tells more.

  pscloud sim --seeds 10000                fresh ones: --first-seed 123456
  pscloud sim --first-seed 7 --seeds 1     replays one; PSCLOUD_SEED=7 does too
  pscloud sim --break dedup                shows that the checks notice

Exit code 1 if a rule was broken; the seed and the last steps are shown.)";

struct SimCommand {
  uint64_t seeds = 1000;
  uint64_t first_seed = 1;
  int threads = 0;
  std::string sabotage;
  bool json = false;
};

void print_json(const SimSummary& summary, double wall_seconds) {
  JsonWriter json;
  json.begin_object();
  json.field("seeds", summary.seeds).field("violations", summary.violations);
  json.key("faults").begin_object();
  for (const auto& [kind, count] : summary.faults) json.field(kind, count);
  json.end_object();
  json.field("jobs_failed", summary.jobs_failed);
  json.key("failed_because").begin_object();
  for (const auto& [why, count] : summary.failed_because) json.field(why, count);
  json.end_object();
  json.field("steps", summary.steps);
  json.field("virtual_seconds", summary.virtual_seconds).field("wall_seconds", wall_seconds);
  if (summary.violations > 0) json.field("seed", summary.first.seed).field("violation", summary.first.violation);
  json.end_object();
  fmt::print("{}\n", json.text());
}

void print_text(const SimSummary& summary, double wall_seconds) {
  fmt::print("{} seeds, {} violations; {} steps, {:.0f} virtual seconds in {:.1f} s\n", summary.seeds,
             summary.violations, summary.steps, summary.virtual_seconds, wall_seconds);
  for (const auto& [kind, count] : summary.faults) fmt::print("  {:<22} {:>12}\n", kind, count);
  fmt::print("{} jobs failed, each for a fault that explains it\n", summary.jobs_failed);
  for (const auto& [why, count] : summary.failed_because) fmt::print("  {:<22} {:>12}\n", why, count);
}

int run_sim_command(SimCommand flags) {
  if (const char* seed = std::getenv("PSCLOUD_SEED"); seed != nullptr && *seed != '\0') {
    if (!parse_number(seed, uint64_t{0}, UINT64_MAX, flags.first_seed)) {
      return fail(invalid("PSCLOUD_SEED is '{}': it must be a number, the seed to replay", seed));
    }
    flags.seeds = 1;
  }
  Sabotage sabotage;
  sabotage.no_dedup = flags.sabotage == "dedup";
  sabotage.no_gate = flags.sabotage == "gate";
  sabotage.no_bound = flags.sabotage == "bound";
  sabotage.no_memo = flags.sabotage == "memo";
  // The nodes' own lines would be millions.
  set_log_level(LogLevel::kSilent);
  const int threads =
      flags.threads > 0 ? flags.threads : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));

  const auto start = std::chrono::steady_clock::now();
  const auto elapsed = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); };
  const bool show = isatty(STDERR_FILENO) != 0;
  double next_line = 1;
  const SimSummary summary = simulate_seeds(flags.first_seed, flags.seeds, threads, sabotage, [&](uint64_t done) {
    if (!show || elapsed() < next_line) return;
    next_line = elapsed() + 1;
    fmt::print(stderr, "\r{} of {} seeds, {:.0f} s left ", done, flags.seeds,
               elapsed() * static_cast<double>(flags.seeds - done) / static_cast<double>(done));
  });
  if (show) fmt::print(stderr, "\r\033[K");

  flags.json ? print_json(summary, elapsed()) : print_text(summary, elapsed());
  if (summary.violations == 0) return kExitDone;
  fmt::print(stderr, "pscloud: seed {} broke a rule: {}\n{}replay it with PSCLOUD_SEED={} pscloud sim{}{}\n",
             summary.first.seed, summary.first.violation, summary.first.trace, summary.first.seed,
             flags.sabotage.empty() ? "" : " --break ", flags.sabotage);
  return kExitFailed;
}

}  // namespace

void add_sim(CLI::App& verb, Action& action) {
  const auto flags = std::make_shared<SimCommand>();
  verb.add_option("--seeds", flags->seeds, "how many to run [1000]")->type_name("N")->check(CLI::PositiveNumber);
  verb.add_option("--first-seed", flags->first_seed, "the first of them [1]")->type_name("N");
  verb.add_option("--threads", flags->threads, "run so many at a time [all cores]")->type_name("N");
  verb.add_option("--break", flags->sabotage, "switch a part of the protocol off: dedup, gate, bound or memo")
      ->type_name("PART")
      ->check(CLI::IsMember({"dedup", "gate", "bound", "memo"}));
  verb.add_flag("--json", flags->json, "for programs");
  verb.footer(kSimAbout);
  verb.callback([flags, &action] { action = [flags] { return run_sim_command(*flags); }; });
}

}  // namespace pscloud

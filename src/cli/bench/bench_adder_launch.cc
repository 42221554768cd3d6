#include "cli/bench/bench_adder_launch.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>

#include "base/clock.h"
#include "base/json.h"
#include "base/text.h"
#include "cli/bench/bench_adder_gather.h"
#include "cli/bench/bench_adder_peers.h"
#include "cli/bench/bench_adder_report.h"
#include "cli/bench/bench_adder_steps.h"
#include "cli/bench/quantiles.h"
#include "cli/exit_code.h"
#include "cli/table_text.h"
#include "launch/job_certificates.h"
#include "launch/job_file.h"
#include "launch/process/processes.h"
#include "launch/process/spawn.h"

namespace pscloud {
namespace {

constexpr const char* kOurVariant = "pscloud";
constexpr const char* kAllVariants = "all";
constexpr const char* kAdderServerMemory = "64G";  // as much as the machine has

// One of the systems, and what came of it.
struct Variant {
  std::string name;
  std::string run = {};  // folder
  std::optional<AdderOutcome> outcome = {};
  std::string trouble = {};  // why there is no outcome
  bool installed = true;     // if not, that is no failure
};

class AdderRuns {
 public:
  AdderRuns(const AdderFlags& flags, const AdderLaunch& launch) : flags_(flags), launch_(launch) {}

  int run();

 private:
  int run_ours();
  int run_peer(const AdderPeer& peer);
  RunJobOptions options_for(Variant& variant, AdderGather& gather);
  AdderGather::OnStep steps_to_tensorboard();
  void open_steps(const std::string& variant, const std::string& run_folder);
  const Variant* ours() const;
  void print_text() const;
  void print_peers() const;
  void print_json() const;
  int code() const;

  const AdderFlags& flags_;
  const AdderLaunch& launch_;
  std::vector<Variant> variants_;
  std::string tensorboard_;  // folder of all variants' steps
  std::optional<AdderSteps> steps_;
};

// Empty if there is a program that shows the steps here.
std::string how_to_get_tensorboard() {
  return find_program("tensorboard", own_variable("PATH")) ? "" : "; `python3 -m pip install tensorboard` gets it";
}

void AdderRuns::open_steps(const std::string& variant, const std::string& run_folder) {
  steps_.reset();
  if (tensorboard_.empty()) {
    tensorboard_ = flags_.tensorboard.empty() ? run_folder + "/tensorboard" : flags_.tensorboard;
    say(fmt::format("each step: `tensorboard --logdir {}`, then http://localhost:6006/{}", tensorboard_,
                    how_to_get_tensorboard()));
  }
  auto steps = AdderSteps::create(flags_, tensorboard_ + "/" + variant, unix_s_now());
  if (!steps) return say(steps.error().message);
  steps_.emplace(*std::move(steps));
}

AdderGather::OnStep AdderRuns::steps_to_tensorboard() {
  return [this](const AdderSample& sample, const AdderSample& split) {
    if (!steps_) return;
    const auto written = steps_->write(unix_s_now(), sample, split);
    if (written) return;
    say(written.error().message);
    steps_.reset();
  };
}

RunJobOptions AdderRuns::options_for(Variant& variant, AdderGather& gather) {
  RunJobOptions options = launch_.run;
  options.json = launch_.json && options.plan;
  options.on_folder = [this, &variant](const std::string& folder) {
    variant.run = folder;
    open_steps(variant.name, folder);
  };
  options.look = [&gather](const TaskEvent& event) { return gather.look(event); };
  return options;
}

int AdderRuns::run_ours() {
  const auto job = adder_launch_job(flags_, launch_.job);
  if (!job) return fail(job.error());
  Variant& variant = variants_.emplace_back(Variant{.name = kOurVariant});
  AdderGather gather(flags_, steps_to_tensorboard());
  RunJobOptions options = options_for(variant, gather);
  options.usual_name = "adder";
  if (const int failed = run_job(*job, options); failed != kExitDone || options.plan) return failed;
  auto outcome = gather.outcome();
  if (!outcome) return fail(outcome.error());
  outcome->place = AdderPlace{.on = launch_.run.on,
                              .run = variant.run,
                              .tensorboard = tensorboard_,
                              .unmeasured = outcome->socket_ms.empty() ? gather.unmeasured() : "",
                              .hosts = gather.hosts()};
  variant.outcome = *std::move(outcome);
  return kExitDone;
}

// A peer that is not installed, or fails, does not end the rest.
int AdderRuns::run_peer(const AdderPeer& peer) {
  Job job = adder_peer_job(peer, flags_, launch_.warmup_given, launch_.python);
  JobFlags named = launch_.job;
  if (!named.name.empty()) named.name = fmt::format("{}-{}", named.name, peer.name);
  if (const auto applied = apply_job_flags(named, job); !applied) return fail(applied.error());
  Variant& variant = variants_.emplace_back(Variant{.name = peer.name});
  AdderGather gather(flags_, steps_to_tensorboard());
  RunJobOptions options = options_for(variant, gather);
  options.usual_name = fmt::format("adder-{}", peer.name);
  options.silent = options.quiet = true;
  std::optional<Error> unreachable;
  std::optional<LaunchEnd> end;
  options.on_end = [&](const Result<LaunchEnd>& ended) {
    if (ended) end = *ended;
    if (!ended) unreachable = ended.error();
  };
  if (!options.plan) say(fmt::format("runs the adder of {}", peer.name));
  const int code = run_job(std::move(job), options);
  if (unreachable) return fail(*unreachable);
  if (!end || code == kExitInterrupted) return code;
  if (const auto missing = gather.missing_on(); !missing.empty()) {
    variant.installed = false;
    variant.trouble = fmt::format("not installed for {} on {}: `{} -m pip install {}` there, or --python",
                                  launch_.python, fmt::join(missing, ", "), launch_.python, peer.package);
    return kExitDone;
  }
  if (code != kExitDone) {
    variant.trouble = end->outcome.message;
    for (const std::string& line : end->last_lines) fmt::print(stderr, "    {}\n", escape_controls(line));
    return kExitDone;
  }
  auto outcome = gather.outcome();
  if (outcome) {
    variant.outcome = *std::move(outcome);
  } else {
    variant.trouble = outcome.error().message;
  }
  return kExitDone;
}

const Variant* AdderRuns::ours() const {
  const auto found = std::ranges::find(variants_, kOurVariant, &Variant::name);
  return found == variants_.end() ? nullptr : &*found;
}

void AdderRuns::print_peers() const {
  const double our_ms = ours() == nullptr ? NAN : quantile(ours()->outcome->all(&AdderSample::iteration_ms), 0.5);
  std::vector<std::vector<std::string>> rows{{"milliseconds", "p50", "p95", "min", "GB/s", "/ pscloud", "values", ""}};
  const auto number = [](double value) { return std::isnan(value) ? "-" : fmt::format("{:.2f}", value); };
  for (const Variant& variant : variants_) {
    if (!variant.outcome) continue;
    const Quantiles q(variant.outcome->all(&AdderSample::iteration_ms));
    rows.push_back({variant.name, number(q.p50), number(q.p95), number(q.min),
                    number(adder_gb_per_s(flags_, *variant.outcome)), number(q.p50 / our_ms),
                    variant.outcome->values_ok ? "all right" : "WRONG", variant.outcome->transport});
  }
  if (rows.size() > 1) print_table(rows);
  for (const Variant& variant : variants_) {
    if (!variant.trouble.empty()) fmt::print("{}: {}\n", variant.name, variant.trouble);
  }
}

void AdderRuns::print_text() const {
  if (ours() != nullptr) fmt::print("{}", adder_text(flags_, *ours()->outcome));
  if (ours() != nullptr && variants_.size() == 1) return;
  if (ours() != nullptr) fmt::print("\n");
  print_peers();
}

void AdderRuns::print_json() const {
  JsonWriter json;
  json.begin_object();
  write_adder_question(json, flags_);
  if (ours() != nullptr) write_adder_answer(json, flags_, *ours()->outcome);
  json.key("variants").begin_array();
  for (const Variant& variant : variants_) {
    json.begin_object().field("variant", variant.name).field("run", variant.run);
    if (variant.outcome) {
      const Quantiles q(variant.outcome->all(&AdderSample::iteration_ms));
      json.field("how", variant.outcome->transport).field("ms_p50", q.p50).field("ms_p95", q.p95);
      json.field("ms_min", q.min).field("gb_per_s", adder_gb_per_s(flags_, *variant.outcome));
      json.field("values_ok", variant.outcome->values_ok);
    } else {
      json.field(variant.installed ? "error" : "not_installed", variant.trouble);
    }
    json.end_object();
  }
  fmt::print("{}\n", json.end_array().end_object().text());
}

int AdderRuns::code() const {
  for (const Variant& variant : variants_) {
    if (variant.outcome ? !variant.outcome->values_ok : variant.installed) return kExitFailed;
  }
  return kExitDone;
}

int AdderRuns::run() {
  const auto wanted = [&](std::string_view name) {
    return std::ranges::any_of(launch_.variants, [&](const std::string& v) { return v == name || v == kAllVariants; });
  };
  variants_.reserve(1 + adder_peers().size());  // runs refer to them
  if (wanted(kOurVariant)) {
    if (const int failed = run_ours(); failed != kExitDone) return failed;
  }
  for (const AdderPeer& peer : adder_peers()) {
    if (!wanted(peer.name)) continue;
    if (const int failed = run_peer(peer); failed != kExitDone) return failed;
  }
  if (launch_.run.plan) return kExitDone;
  launch_.json ? print_json() : print_text();
  if (code() != kExitDone) say("not every adder came to its end with the right values");
  return code();
}

}  // namespace

Result<Job> adder_launch_job(const AdderFlags& flags, const JobFlags& job_flags) {
  const LocalTransport& transport = flags.cluster.transport;
  Job job;
  job.framework = Framework::kPscloud;
  // Ours before the user's, whose word wins.
  if (transport.name == "tcp") job.environment.emplace_back("PSCLOUD_INSECURE", "1");
  if (!transport.shared_memory()) job.environment.emplace_back("PSCLOUD_SHARED_MEMORY", "0");
  std::vector<std::string> command{"pscloud", "bench", "adder", "--as-task"};
  const auto add = [&](const char* flag, std::string value) {
    command.emplace_back(flag);
    command.push_back(std::move(value));
  };
  add("--size-mb", fmt::to_string(flags.plan.size_mb));
  add("--mode", flags.plan.sync ? "sync" : "async");
  add("--iters", std::to_string(flags.iters));
  add("--warmup", std::to_string(flags.warmup));
  if (flags.plan.lent) command.emplace_back("--lent");
  RoleSpec scheduler{.role = TaskRole::kScheduler, .count = 1, .commands = {{"pscloud", "node", "--quiet"}}};
  RoleSpec server{.role = TaskRole::kServer, .count = flags.cluster.servers, .commands = {command}};
  server.environment = {{"PSCLOUD_MEMORY_MAX", kAdderServerMemory},
                        {"PSCLOUD_OWNERS", std::to_string(flags.cluster.server_threads)}};
  RoleSpec worker{.role = TaskRole::kWorker, .count = flags.cluster.workers, .commands = {command}};
  job.roles = {scheduler, server, worker};
  TRY(apply_job_flags(job_flags, job));
  if (wants_certificates(job)) TRY(add_certificates(job));
  return job;
}

int launch_adder(const AdderFlags& flags, const AdderLaunch& launch) { return AdderRuns(flags, launch).run(); }

}  // namespace pscloud

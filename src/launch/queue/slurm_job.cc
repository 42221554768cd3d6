#include "launch/queue/slurm_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace pscloud {
namespace {

constexpr uint64_t kMegabyte = uint64_t{1} << 20;

bool asks_for_nothing(const Resources& resources) {
  return resources.cpus == 0 && resources.memory_bytes == 0 && resources.gpus == 0;
}

bool same(const Resources& a, const Resources& b) {
  return a.cpus == b.cpus && a.memory_bytes == b.memory_bytes && a.gpus == b.gpus;
}

Resources most_of(const Resources& a, const Resources& b) {
  return {std::max(a.cpus, b.cpus), std::max(a.memory_bytes, b.memory_bytes), std::max(a.gpus, b.gpus)};
}

int cpus_of(const Resources& resources) { return std::max(resources.cpus, 1); }

void add_resources(std::vector<std::string>& words, const SlurmComponent& component) {
  words.push_back(fmt::format("--ntasks={}", component.count));
  words.push_back(fmt::format("--cpus-per-task={}", cpus_of(component.resources)));
  if (component.resources.memory_bytes > 0) {
    // --mem would be for each machine, however many tasks it gets.
    const uint64_t megabytes = (component.resources.memory_bytes + kMegabyte - 1) / kMegabyte;
    const auto cpus = static_cast<uint64_t>(cpus_of(component.resources));
    words.push_back(fmt::format("--mem-per-cpu={}M", (megabytes + cpus - 1) / cpus));
  }
  if (component.resources.gpus > 0) words.push_back(fmt::format("--gpus-per-task={}", component.resources.gpus));
}

// The partition, account and so on hold for one component only: each names them again.
void add_options(std::vector<std::string>& words, const Plan& plan, const SlurmOptions& options) {
  const std::array<std::pair<const char*, const std::string*>, 5> named = {{{"partition", &options.partition},
                                                                            {"account", &options.account},
                                                                            {"qos", &options.qos},
                                                                            {"constraint", &options.constraint},
                                                                            {"reservation", &options.reservation}}};
  for (const auto& [name, value] : named) {
    if (!value->empty()) words.push_back(fmt::format("--{}={}", name, *value));
  }
  if (!options.time.empty()) {
    words.push_back(fmt::format("--time={}", options.time));
  } else if (plan.run_timeout_ms > 0) {
    // The launcher ends the job; this is for when it cannot.
    const int64_t ms = plan.arrive_timeout_ms + plan.run_timeout_ms + plan.stop_grace_ms;
    words.push_back(fmt::format("--time={}", ms / 60000 + 1));
  }
}

// In the name of a file sbatch replaces %j and others.
std::string without_patterns(std::string_view path) {
  std::string text;
  for (const char letter : path) text += letter == '%' ? std::string("%%") : std::string(1, letter);
  return text;
}

}  // namespace

std::vector<SlurmComponent> slurm_components(const Plan& plan, bool one_shape) {
  std::vector<SlurmComponent> components;
  for (size_t number = 0; number < plan.tasks.size(); ++number) {
    const Resources& wanted = plan.tasks[number].resources;
    if (components.empty()) {
      components.push_back({static_cast<int>(number), 1, wanted});
      continue;
    }
    SlurmComponent& last = components.back();
    if (one_shape) {
      last.resources = most_of(last.resources, wanted);
    } else if (asks_for_nothing(last.resources)) {
      last.resources = wanted;
    } else if (!asks_for_nothing(wanted) && !same(last.resources, wanted)) {
      components.push_back({static_cast<int>(number), 1, wanted});
      continue;
    }
    ++last.count;
  }
  return components;
}

std::string slurm_job_name(const Plan& plan) { return fmt::format("pscloud-{}-{}", plan.run, plan.job); }

std::vector<std::string> sbatch_words(const Plan& plan, const SlurmOptions& options, const std::string& output) {
  std::vector<std::string> words = {"sbatch",
                                    "--parsable",
                                    "--export=NONE",
                                    "--no-requeue",
                                    fmt::format("--job-name={}", slurm_job_name(plan)),
                                    fmt::format("--output={}", without_patterns(output))};
  bool first = true;
  for (const SlurmComponent& component : slurm_components(plan, options.one_shape)) {
    if (!std::exchange(first, false)) words.emplace_back(":");
    add_options(words, plan, options);
    add_resources(words, component);
  }
  return words;
}

std::string slurm_script(const std::vector<SlurmComponent>& components, const std::vector<std::string>& agent) {
  // With --export=NONE there may be no PATH; the agent adds the rest (login_environment.h).
  std::string script = "#!/bin/sh\nPATH=${PATH:-/usr/local/bin:/usr/bin:/bin}\nexport PATH\n";
  const bool heterogeneous = components.size() > 1;
  for (size_t number = 0; number < components.size(); ++number) {
    const SlurmComponent& component = components[number];
    // A task that fails must not take the others with it: the launcher ends them, after it has seen why.
    script += "srun --export=ALL --input=none --unbuffered --kill-on-bad-exit=0 --wait=0";
    if (heterogeneous) script += fmt::format(" --het-group={}", number);
    // srun takes the number of CPUs from nobody but its own command line.
    script += fmt::format(" --ntasks={} --cpus-per-task={}", component.count, cpus_of(component.resources));
    for (const std::string& word : agent) script += " " + sh_word(word);
    script +=
        fmt::format(" --number-from SLURM_PROCID --number-first {}{}\n", component.first, heterogeneous ? " &" : "");
  }
  if (heterogeneous) script += "wait\n";
  return script;
}

std::string sh_word(std::string_view word) {
  std::string quoted = "'";
  for (const char letter : word) quoted += letter == '\'' ? std::string("'\\''") : std::string(1, letter);
  return quoted + "'";
}

bool SlurmState::ended() const {
  constexpr std::array kEnded = {"BOOT_FAIL", "CANCELLED",     "COMPLETED", "DEADLINE", "FAILED",
                                 "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED", "REVOKED",  "TIMEOUT"};
  return std::ranges::find(kEnded, state) != kEnded.end();
}

std::vector<SlurmState> parse_squeue(std::string_view text) {
  std::vector<SlurmState> states;
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    std::array<std::string_view, 4> fields;
    for (size_t field = 0; field < fields.size(); ++field) {
      const size_t end = field + 1 < fields.size() ? line.find('|') : std::string_view::npos;
      fields.at(field) = line.substr(0, end);
      line.remove_prefix(end == std::string_view::npos ? line.size() : end + 1);
    }
    if (fields[0].empty() || fields[1].empty()) continue;
    states.push_back({std::string(fields[0]), std::string(fields[1]), std::string(fields[2]), std::string(fields[3])});
  }
  return states;
}

}  // namespace pscloud

#include "launch/backend.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/suggest.h"
#include "launch/backend_fake.h"
#include "launch/host/backend_local.h"
#include "launch/host/backend_ssh.h"
#include "launch/kubernetes/backend_kubernetes.h"
#include "launch/queue/backend_condor.h"
#include "launch/queue/backend_slurm.h"
#include "launch/swarm/backend_swarm.h"

namespace pscloud {

bool is_figure_name(std::string_view name) {
  constexpr size_t kNameBytesMax = 64;
  return !name.empty() && name.size() <= kNameBytesMax &&
         std::ranges::all_of(name, [](char c) { return c > ' ' && c <= '~' && c != ',' && c != '"'; });
}

namespace {

// In the order the help shows them.
constexpr std::array kBackendKinds = {
    BackendKind{"local", "processes of this machine", false, false, {}, make_local_backend},
    BackendKind{"ssh", "machines of your own: a cluster file names them", false, false, kSshOptions, make_ssh_backend},
    BackendKind{"slurm", "a job of Slurm, submitted from here", false, true, kSlurmOptions, make_slurm_backend},
    BackendKind{"condor", "jobs of HTCondor, submitted from here", true, true, kCondorOptions, make_condor_backend},
    BackendKind{"swarm", "a Docker Swarm: a service for each task (docs/swarm.md)", true, true, kSwarmOptions,
                make_swarm_backend},
    BackendKind{"kubernetes", "a Kubernetes cluster: StatefulSets and Indexed Jobs (docs/kubernetes.md)", true, true,
                kKubernetesOptions, make_kubernetes_backend},
    BackendKind{"fake", "nothing real: tasks do as their words say (docs/launch.md)", false, false, kFakeOptions,
                make_fake_backend},
};

// Those that can do something, "--on condor, --on swarm or --on kubernetes".
std::string kinds_with(bool BackendKind::*ability) {
  std::vector<std::string> names;
  for (const BackendKind& kind : kBackendKinds) {
    if (kind.*ability) names.push_back(fmt::format("--on {}", kind.name));
  }
  const std::string last = names.back();
  names.pop_back();
  return fmt::format("{} or {}", fmt::join(names, ", "), last);
}

bool kind_can(const std::string& name, bool BackendKind::*ability) {
  const auto kind = std::ranges::find(kBackendKinds, name, &BackendKind::name);
  return kind != kBackendKinds.end() && (*kind).*ability;
}

std::string perhaps(std::string_view word, const std::vector<std::string>& known) {
  const std::string near = suggest(word, known);
  return near.empty() ? "" : fmt::format("; did you mean '{}'?", near);
}

}  // namespace

std::span<const BackendKind> backend_kinds() { return kBackendKinds; }

Result<std::unique_ptr<Backend>> make_backend(const Cluster& cluster, const std::string& run_folder) {
  const auto kind = std::ranges::find(kBackendKinds, cluster.target, &BackendKind::name);
  if (kind == kBackendKinds.end()) {
    std::vector<std::string> names;
    for (const BackendKind& each : kBackendKinds) names.emplace_back(each.name);
    return invalid("there is no cluster of the kind '{}'{}; there are {}", cluster.target,
                   perhaps(cluster.target, names), fmt::join(names, ", "));
  }
  std::vector<std::string> names;
  for (const BackendOption& option : kind->options) names.emplace_back(option.name);
  for (const auto& [name, value] : cluster.options) {
    if (std::ranges::find(names, name) != names.end()) continue;
    if (names.empty()) return invalid("{} takes no options, and so no '{}'", kind->name, name);
    return invalid("{} has no option '{}'{}; there are {}", kind->name, name, perhaps(name, names),
                   fmt::join(names, ", "));
  }
  return kind->make(cluster, run_folder);
}

Result<> check_wishes(const Plan& plan) {
  if (kind_can(plan.target, &BackendKind::images)) return {};
  const auto task = std::ranges::find_if(plan.tasks, [](const PlannedTask& each) { return !each.image.empty(); });
  if (task == plan.tasks.end()) return {};
  return invalid("{} has no containers, and {} is to run in the image {}: choose {}, or name no image", plan.target,
                 task->spec.id.text(), task->image, kinds_with(&BackendKind::images));
}

std::string unheeded_wishes(const Plan& plan) {
  if (kind_can(plan.target, &BackendKind::resources)) return "";
  const auto any_asks = [&](auto Resources::*what) {
    return std::ranges::any_of(plan.tasks, [what](const PlannedTask& task) { return task.resources.*what > 0; });
  };
  std::vector<const char*> asked;
  if (any_asks(&Resources::cpus)) asked.push_back("cpus");
  if (any_asks(&Resources::memory_bytes)) asked.push_back("memory");
  if (any_asks(&Resources::gpus)) asked.push_back("gpus");
  if (asked.empty()) return "";
  return fmt::format("{} does not enforce resources: what tasks ask for ({}) is not looked at", plan.target,
                     fmt::join(asked, ", "));
}

std::string option_of(const Cluster& cluster, std::string_view name) {
  for (const auto& [each, value] : cluster.options) {
    if (each == name) return value;
  }
  return "";
}

}  // namespace pscloud

#include "launch/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/text.h"
#include "launch/contract/contract.h"

namespace pscloud {
namespace {

constexpr int kTasksMax = 10000;

Result<> check_role(const RoleSpec& role, const Cluster& cluster) {
  const char* name = role_name(role.role);
  const size_t commands = role.commands.size();
  if (commands > 1 && commands != static_cast<size_t>(role.count)) {
    return invalid("there are {} commands for {} tasks of the role {}: give one for all, or one for each", commands,
                   role.count, name);
  }
  const bool has_image = !role.image.empty() || !cluster.image.empty();
  for (const auto& command : role.commands) {
    if (!command.empty() && command.front().empty()) return invalid("the command of the role {} has no name", name);
  }
  const bool has_command = commands > 0 && std::ranges::none_of(role.commands, &std::vector<std::string>::empty);
  if (!has_command && !has_image) {
    return invalid("there is no command for the role {}: write it behind --, or name an image that has its own", name);
  }
  return {};
}

// Gives out hosts: of those for the role, the one with the fewest tasks so far, by the order of the file among equals.
class Placement {
 public:
  explicit Placement(const Cluster& cluster) : hosts_(cluster.hosts), used_(cluster.hosts.size()) {}

  // nullptr if the cluster finds one itself.
  Result<const Host*> next(TaskRole role) {
    if (hosts_.empty()) return nullptr;
    size_t best = hosts_.size();
    bool any = false;
    for (size_t i = 0; i < hosts_.size(); ++i) {
      const Host& host = hosts_[i];
      if (!host.is_for(role)) continue;
      any = true;
      if (host.slots > 0 && used_[i] >= host.slots) continue;
      if (best == hosts_.size() || used_[i] < used_[best]) best = i;
    }
    if (best < hosts_.size()) {
      ++used_[best];
      return &hosts_[best];
    }
    if (!any) return invalid("no host of the cluster is for the role {}", role_name(role));
    return invalid("no slot is left");
  }

  int slots(TaskRole role) const {
    int slots = 0;
    for (const Host& host : hosts_) {
      if (host.is_for(role)) slots += host.slots;
    }
    return slots;
  }

 private:
  const std::vector<Host>& hosts_;
  std::vector<int> used_;
};

// They become names of fields on their way to a machine. Values may be any bytes.
Result<> check_variable_names(const TaskSpec& spec) {
  for (const auto& [name, value] : spec.environment) {
    if (!is_utf8(name)) return invalid("'{}' is no name of a variable: it is not UTF-8", escape_controls(name));
  }
  for (const TaskFile& file : spec.files) {
    if (!is_utf8(file.name)) return invalid("'{}' is no name of a secret: it is not UTF-8", escape_controls(file.name));
  }
  return {};
}

PlannedTask plan_task(const Job& job, const Cluster& cluster, const RoleSpec& role, int index) {
  PlannedTask task;
  task.spec.run = job.run;
  task.spec.id = {role.role, index};
  task.spec.framework = job.framework;
  if (!role.commands.empty()) {
    task.spec.command = role.commands[role.commands.size() == 1 ? 0 : static_cast<size_t>(index)];
  }
  if (!cluster.virtualenv.empty()) task.spec.environment.emplace_back("VIRTUAL_ENV", cluster.virtualenv);
  for (const Variables* more : {&cluster.environment, &job.environment, &role.environment}) {
    for (const auto& [name, value] : *more) put_variable(task.spec.environment, name, value);
  }
  task.spec.files = job.secrets;
  task.spec.files.insert(task.spec.files.end(), role.secrets.begin(), role.secrets.end());
  task.spec.stop_grace_ms = job.stop_grace_ms;
  task.spec.arrive_timeout_ms = job.arrive_timeout_ms;
  task.spec.port = role.port;
  task.image = role.image.empty() ? cluster.image : role.image;
  const auto found = std::ranges::find(cluster.resources, role.role, &std::pair<TaskRole, Resources>::first);
  if (found != cluster.resources.end()) task.resources = found->second;
  if (role.resources.cpus > 0) task.resources.cpus = role.resources.cpus;
  if (role.resources.memory_bytes > 0) task.resources.memory_bytes = role.resources.memory_bytes;
  if (role.resources.gpus > 0) task.resources.gpus = role.resources.gpus;
  return task;
}

}  // namespace

Result<> check_run_name(std::string_view name) {
  const auto fits = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; };
  if (!name.empty() && name.size() <= kRunNameMax && name.front() >= 'a' && name.front() <= 'z' && name.back() != '-' &&
      std::ranges::all_of(name, fits)) {
    return {};
  }
  return invalid("'{}' is no name of a run: a small letter, then small letters, digits and '-', {} at most", name,
                 kRunNameMax);
}

const PlannedTask* Plan::find(TaskId id) const {
  const auto found = std::ranges::find(tasks, id, [](const PlannedTask& task) { return task.spec.id; });
  return found == tasks.end() ? nullptr : &*found;
}

// Each host that has a task once, however often it stands in the file.
void plan_cost(const Cluster& cluster, Plan& plan) {
  std::map<std::string, double> hosts;
  plan.cost_incomplete = cluster.cost_unknown;
  for (const Host& host : cluster.hosts) {
    const bool used = std::ranges::any_of(plan.tasks, [&](const PlannedTask& task) { return task.host == host.name; });
    if (!used) continue;
    hosts[host.name] = std::max(hosts[host.name], host.cost_usd_per_hour);
    plan.cost_incomplete = plan.cost_incomplete || host.cost_unknown;
  }
  plan.cost_usd_per_hour = cluster.cost_usd_per_hour;
  for (const auto& [name, cost] : hosts) plan.cost_usd_per_hour += cost;
}

Result<Plan> make_plan(const Job& job, const Cluster& cluster, const std::string& job_id) {
  TRY(check_run_name(job.run));
  Plan plan;
  plan.job = job_id;
  plan.run = job.run;
  plan.target = cluster.target;
  plan.framework = job.framework;
  plan.files = cluster.files;
  plan.files.insert(plan.files.end(), job.files.begin(), job.files.end());
  plan.worker_may_fail = job.worker_may_fail;
  plan.late_workers = job.late_workers;
  plan.arrive_timeout_ms = job.arrive_timeout_ms;
  plan.stop_grace_ms = job.stop_grace_ms;
  plan.run_timeout_ms = job.run_timeout_ms;

  Placement placement(cluster);
  int workers = 0;
  for (const RoleSpec& role : job.roles) {
    if (role.count <= 0) continue;
    if (role.role == TaskRole::kWorker) workers = role.count;
    TRY(check_role(role, cluster));
    for (int index = 0; index < role.count; ++index) {
      PlannedTask task = plan_task(job, cluster, role, index);
      task.spec.job = job_id;
      TRY(check_variable_names(task.spec));
      const auto host = placement.next(role.role);
      if (!host && placement.slots(role.role) > 0) {
        return invalid("{} {}s do not fit: the hosts for them have {} slots, and {} of them are left for this role",
                       role.count, role_name(role.role), placement.slots(role.role), index);
      }
      if (!host) return host.error();
      if (*host != nullptr) {
        task.host = (*host)->name;
        task.spec.advertise = (*host)->interface.empty() ? (*host)->address : (*host)->interface;
      }
      plan.tasks.push_back(std::move(task));
      if (plan.tasks.size() > kTasksMax) return invalid("more than {} tasks are too many for one job", kTasksMax);
    }
  }
  if (plan.tasks.empty()) return invalid("the job has no tasks: --workers 2, say");
  if (job.workers_min > workers) {
    return invalid("the job is to begin with {} workers, and has {}", job.workers_min, workers);
  }
  plan.workers_min = job.workers_min;

  std::vector<TaskId> ids;
  for (const PlannedTask& task : plan.tasks) ids.push_back(task.spec.id);
  TRY(check_contract(job.framework, ids));
  for (PlannedTask& task : plan.tasks) task.ends_job = ends_job(task.spec.id.role, ids);
  plan_cost(cluster, plan);
  return plan;
}

}  // namespace pscloud

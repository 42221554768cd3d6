#include "launch/machine_search.h"

#include <algorithm>
#include <utility>

namespace pscloud {

MachineSearch::MachineSearch(const RunFolder& folder, MakeSupply make_supply)
    : folder_(folder), make_supply_(std::move(make_supply)) {}

Result<> MachineSearch::read_cluster() {
  if (cluster_) return {};
  const std::string text = TRY(folder_.read("cluster.json"));
  cluster_ = TRY(parse_cluster_file(text, folder_.path("cluster.json")));
  supply_ = make_supply_(*cluster_);
  return {};
}

std::optional<Host> MachineSearch::find_idle(TaskRole role, const std::vector<TaskStatus>& tasks) const {
  const auto is_used = [&](const Host& host) {
    const auto has_it = [&](const TaskStatus& task) { return !task.ended() && task.host == host.name; };
    const auto gets_one = [&](const auto& each) { return each.second && each.second->name == host.name; };
    return std::ranges::any_of(tasks, has_it) || std::ranges::any_of(found_, gets_one);
  };
  for (const Host& host : cluster_->hosts) {
    if (host.is_for(role) && !leaving_.contains(host.name) && !is_used(host)) return host;
  }
  return std::nullopt;
}

void MachineSearch::ask(TaskId task, const std::string& host, const std::vector<TaskStatus>& tasks) {
  waiting_.push_back({task, host});
  if (!leaving_.insert(host).second) return;
  if (const auto known = read_cluster(); !known) {
    found_.emplace(host, known.error());
  } else if (auto idle = find_idle(task.role, tasks)) {
    found_.emplace(host, *std::move(idle));
  } else if (supply_ != nullptr) {
    supply_->ask(host);
  } else {
    found_.emplace(host, not_found("the cluster has none that is idle"));
  }
}

std::vector<MachineSearch::Found> MachineSearch::take(std::vector<std::string>& words) {
  if (supply_ != nullptr) {
    MachineSupply::News news = supply_->take();
    words = std::move(news.words);
    for (MachineSupply::Offer& offer : news.offers) found_.emplace(offer.instead_of, std::move(offer.host));
  }
  std::vector<Found> all;
  std::erase_if(waiting_, [&](const Wish& wish) {
    const auto found = found_.find(wish.host);
    if (found == found_.end()) return false;
    const Result<Host>& host = found->second;
    all.push_back(host ? Found{wish.task, *host, ""} : Found{wish.task, std::nullopt, host.error().message});
    return true;
  });
  return all;
}

Result<Plan> MachineSearch::note(TaskId task, int attempt, const Host& host) const {
  const std::string cluster_text = TRY(folder_.read("cluster.json"));
  Cluster cluster = TRY(parse_cluster_file(cluster_text, folder_.path("cluster.json")));
  if (std::ranges::find(cluster.hosts, host.name, &Host::name) == cluster.hosts.end()) {
    cluster.hosts.push_back(host);
    TRY(folder_.write("cluster.json", cluster_json(cluster)));
  }
  const std::string plan_text = TRY(folder_.read("plan.json"));
  Plan plan = TRY(parse_plan(plan_text).at(folder_.path("plan.json")));
  for (PlannedTask& each : plan.tasks) {
    if (each.spec.id != task) continue;
    each.host = host.name;
    each.spec.attempt = attempt;
  }
  plan_cost(cluster, plan);
  TRY(folder_.write("plan.json", plan_json(plan)));
  return plan;
}

}  // namespace pscloud

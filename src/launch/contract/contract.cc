#include "launch/contract/contract.h"

#include <algorithm>
#include <array>
#include <limits>

#include "base/check.h"
#include "launch/contract/contract_makers.h"

namespace pscloud {
namespace {

constexpr int kAny = std::numeric_limits<int>::max();

struct RoleCount {
  int least = 0;
  int most = 0;
};

struct FrameworkRules {
  Framework framework;
  std::array<RoleCount, 5> counts;  // by TaskRole: scheduler, server, chief, worker, evaluator
  TaskContract (*make)(const ContractTask&);
};

// A program that is of no framework reads ours, or nothing: so it forbids little.
constexpr std::array kRules = {
    FrameworkRules{Framework::kPscloud, {{{0, 1}, {0, kAny}, {0, 0}, {0, kAny}, {0, 0}}}, pscloud_contract},
    FrameworkRules{Framework::kTensorflow, {{{0, 0}, {0, kAny}, {0, 1}, {0, kAny}, {0, 1}}}, tensorflow_contract},
    FrameworkRules{Framework::kPaddle, {{{0, 0}, {0, kAny}, {0, 0}, {1, kAny}, {0, 0}}}, paddle_contract},
    FrameworkRules{Framework::kPaddle2018, {{{0, 1}, {1, kAny}, {0, 0}, {1, kAny}, {0, 0}}}, paddle2018_contract},
    FrameworkRules{Framework::kDmlc, {{{1, 1}, {0, kAny}, {0, 0}, {1, kAny}, {0, 0}}}, dmlc_contract},
    FrameworkRules{Framework::kPoseidon, {{{1, 1}, {1, kAny}, {0, 0}, {1, kAny}, {0, 0}}}, poseidon_contract},
    FrameworkRules{Framework::kTorch, {{{0, 0}, {0, kAny}, {0, 1}, {0, kAny}, {0, 0}}}, torch_contract},
};

const FrameworkRules& rules_of(Framework framework) {
  const auto found = std::ranges::find(kRules, framework, &FrameworkRules::framework);
  CHECK(found != kRules.end());
  return *found;
}

int count_of(TaskRole role, const std::vector<TaskId>& tasks) {
  return static_cast<int>(std::ranges::count(tasks, role, &TaskId::role));
}

}  // namespace

ContractTask::ContractTask(const ClusterView& view, TaskId self, const std::string& run)
    : view_(view), self_(self), run_(run), address_(view.find(self)) {
  CHECK(address_ != nullptr);
}

int ContractTask::position() const {
  return static_cast<int>(std::ranges::count_if(
      view_.tasks, [&](const TaskAddress& task) { return task.id.role == self_.role && task.id < self_; }));
}

int ContractTask::count(TaskRole role) const {
  return static_cast<int>(
      std::ranges::count_if(view_.tasks, [role](const TaskAddress& task) { return task.id.role == role; }));
}

std::vector<TaskAddress> ContractTask::tasks(std::initializer_list<TaskRole> roles) const {
  std::vector<TaskAddress> found;
  for (const TaskRole role : roles) {
    for (const TaskAddress& task : view_.tasks) {
      if (task.id.role == role) found.push_back(task);
    }
  }
  return found;
}

std::string ContractTask::list(TaskRole role) const {
  std::string text;
  for (const Address& address : view_.addresses(role)) text += (text.empty() ? "" : ",") + address.text();
  return text;
}

HostPlace host_place(const std::vector<TaskAddress>& tasks, TaskId self) {
  const auto mine = std::ranges::find(tasks, self, &TaskAddress::id);
  CHECK(mine != tasks.end());
  HostPlace place;
  place.rank = static_cast<int>(mine - tasks.begin());
  std::vector<std::string> hosts;
  for (auto task = tasks.begin(); task != tasks.end(); ++task) {
    if (task == mine) place.local_rank = place.local_size;
    if (task->address.host == mine->address.host) ++place.local_size;
    if (std::ranges::find(hosts, task->address.host) == hosts.end()) hosts.push_back(task->address.host);
  }
  place.host = static_cast<int>(std::ranges::find(hosts, mine->address.host) - hosts.begin());
  place.hosts = static_cast<int>(hosts.size());
  return place;
}

std::string host_before_port(const Address& address) {
  const std::string text = address.text();
  return text.substr(0, text.rfind(':'));
}

Result<> check_contract(Framework framework, const std::vector<TaskId>& tasks) {
  const FrameworkRules& rules = rules_of(framework);
  if (tasks.empty()) return invalid("the job has no task: say how many workers it has");
  for (size_t i = 0; i < rules.counts.size(); ++i) {
    const auto role = static_cast<TaskRole>(i);
    const int count = count_of(role, tasks);
    const auto& [least, most] = rules.counts.at(i);
    if (most == 0 && count > 0) {
      return invalid("a {} job has no {}: leave it out, or choose another framework", framework_name(framework),
                     role_name(role));
    }
    if (count > most) {
      return invalid("a {} job has at most {} {}, not {}", framework_name(framework), most, role_name(role), count);
    }
    if (count < least) {
      return invalid("a {} job needs a {}, and has none", framework_name(framework), role_name(role));
    }
  }
  return {};
}

TaskContract contract_of(Framework framework, const ClusterView& view, TaskId self, const std::string& run) {
  TaskContract contract = rules_of(framework).make(ContractTask(view, self, run));
  contract.variables.emplace_back("PSCLOUD_RUN", run);
  contract.variables.emplace_back("PSCLOUD_TASK", self.text());
  // Or what a Python program prints is seen only at its end.
  contract.variables.emplace_back("PYTHONUNBUFFERED", "1");
  return contract;
}

int schedulers_by_default(Framework framework) {
  return rules_of(framework).counts.at(static_cast<size_t>(TaskRole::kScheduler)).least;
}

bool ends_job(TaskRole role, const std::vector<TaskId>& tasks) {
  for (const TaskRole decisive : {TaskRole::kChief, TaskRole::kWorker}) {
    if (count_of(decisive, tasks) > 0) return role == decisive;
  }
  return true;
}

}  // namespace pscloud

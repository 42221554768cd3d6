#include "launch/host/backend_local.h"

#include <fmt/format.h>

#include <set>

#include "launch/agent/agent_hosts.h"
#include "launch/agent/machine_clean.h"
#include "launch/agent/task_program.h"
#include "launch/process/own_program.h"
#include "launch/process/processes.h"
#include "launch/process/spawn.h"

namespace pscloud {
namespace {

constexpr const char* kLocalHost = "localhost";
constexpr const char* kLocalKind = "agent";
constexpr std::chrono::milliseconds kToEnd{5000};

class LocalBackend final : public Backend {
 public:
  explicit LocalBackend(std::string run_folder) : folder_(std::move(run_folder) + "/tasks") {}

  Result<> check(const Plan& plan) override {
    std::set<std::string> wrong;  // each once: often all tasks have one command
    for (const PlannedTask& task : plan.tasks) {
      if (auto found = task_program(task.spec, {}, {}); !found) wrong.insert(found.error().message);
    }
    if (wrong.empty()) return {};
    return invalid("{}", fmt::join(wrong, "\n"));
  }

  Result<> start(const Plan& plan, Ledger& ledger) override {
    const uint64_t entry = TRY(ledger.intend(kLocalKind, {{"job", plan.job}}));
    std::vector<std::string> command = own_program();
    command.emplace_back("task");
    std::vector<std::string> environment = inherited_environment();
    for (const PlannedTask& task : plan.tasks) hide_secrets(task.spec, environment);
    hosts_.add(TRY(AgentConnection::open(kLocalHost, command, environment, [&](pid_t pid) -> Result<> {
      const auto process = identify_process(pid);
      if (!process) return unavailable("the agent was gone before it began");
      return ledger.learn(entry, {{"process", process->text()}});
    })));
    for (const PlannedTask& task : plan.tasks) {
      TaskSpec spec = task.spec;
      spec.private_folder = folder_ + "/" + spec.id.text();
      if (spec.advertise.empty()) spec.advertise = "127.0.0.1";
      hosts_.start(kLocalHost, spec);
    }
    return {};
  }

  Result<> release(const ClusterView& view) override {
    hosts_.release(view);
    return {};
  }

  Result<> stop(TaskId task, bool at_once) override {
    hosts_.stop(task, at_once);
    return {};
  }

  Result<std::vector<TaskEvent>> wait(std::chrono::steady_clock::time_point deadline, int wake_fd) override {
    return hosts_.wait(deadline, wake_fd);
  }

  Result<std::vector<std::string>> clean(const Plan& plan, Ledger& ledger) override {
    hosts_.end(std::chrono::steady_clock::now() + std::chrono::milliseconds(plan.stop_grace_ms) + kToEnd);
    MachineRemains remains;
    remains.job = plan.job;
    remains.folder = folder_;
    remains.grace_ms = plan.stop_grace_ms;
    for (const PlannedTask& task : plan.tasks) remains.tasks.push_back(task.spec.id.text());
    std::vector<std::string> left;
    for (const LedgerEntry& entry : ledger.remaining()) {
      if (entry.kind != kLocalKind) continue;
      const auto process = entry.what.find("process");
      remains.agent = process == entry.what.end() ? "" : process->second;
      const std::vector<std::string> still = clean_machine(remains);
      if (still.empty()) TRY(ledger.gone(entry.number));
      left.insert(left.end(), still.begin(), still.end());
    }
    return left;
  }

  Result<std::vector<std::string>> shell(const Plan& /*plan*/, TaskId /*task*/) override {
    const std::string shell = own_variable("SHELL");
    return std::vector<std::string>{shell.empty() ? "/bin/sh" : shell};
  }

 private:
  const std::string folder_;
  AgentHosts hosts_;
};

}  // namespace

Result<std::unique_ptr<Backend>> make_local_backend(const Cluster& /*cluster*/, const std::string& run_folder) {
  return std::make_unique<LocalBackend>(run_folder);
}

}  // namespace pscloud

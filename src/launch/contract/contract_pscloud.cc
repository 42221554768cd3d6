#include "launch/contract/contract_makers.h"

namespace pscloud {
namespace {

// Linux takes no longer one, NAME= and the end included (MAX_ARG_STRLEN): about 5000 addresses.
constexpr size_t kVariableBytesMax = 128 << 10;

// Our own nodes ask the scheduler where the others are: who has too many of them for a variable goes without.
void add_list(Variables& variables, const std::string& name, std::string list) {
  if (list.empty() || name.size() + list.size() + 2 > kVariableBytesMax) return;
  variables.emplace_back(name, std::move(list));
}

}  // namespace

TaskContract pscloud_contract(const ContractTask& task) {
  Variables variables{{"PSCLOUD_JOB", task.view().job}, {"PSCLOUD_ROLE", role_name(task.role())}};
  if (task.has(TaskRole::kScheduler)) variables.emplace_back("PSCLOUD_SCHEDULER", task.list(TaskRole::kScheduler));
  if (task.has(TaskRole::kServer))
    variables.emplace_back("PSCLOUD_SERVERS", std::to_string(task.count(TaskRole::kServer)));
  if (task.has(TaskRole::kWorker))
    variables.emplace_back("PSCLOUD_WORKERS", std::to_string(task.count(TaskRole::kWorker)));
  if (task.role() != TaskRole::kScheduler) variables.emplace_back("PSCLOUD_RANK", std::to_string(task.id().index));
  variables.emplace_back("PSCLOUD_LISTEN", task.address().text());
  add_list(variables, "PSCLOUD_SERVER_ADDRESSES", task.list(TaskRole::kServer));
  add_list(variables, "PSCLOUD_WORKER_ADDRESSES", task.list(TaskRole::kWorker));
  return {variables, {}};
}

// The flags are for the user's program. Poseidon's own master and server read nothing; our variables are for who runs
// nodes of ours in their place.
TaskContract poseidon_contract(const ContractTask& task) {
  TaskContract contract = pscloud_contract(task);
  if (task.role() != TaskRole::kWorker) return contract;
  contract.arguments = {"--distributed", "--master_address", "tcp://" + task.list(TaskRole::kScheduler), "--client_id",
                        std::to_string(task.position())};
  return contract;
}

}  // namespace pscloud

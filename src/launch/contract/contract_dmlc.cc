#include "launch/contract/contract_makers.h"

namespace pscloud {

// ps-lite, MXNet, BytePS. A server or worker listens at DMLC_NODE_HOST and PORT, the scheduler at the root.
TaskContract dmlc_contract(const ContractTask& task) {
  const Address root = task.view().addresses(TaskRole::kScheduler).front();
  const std::string position = std::to_string(task.position());
  Variables variables{{"DMLC_ROLE", role_name(task.role())},
                      {"DMLC_PS_ROOT_URI", root.host},
                      {"DMLC_PS_ROOT_PORT", std::to_string(root.port)},
                      {"DMLC_NUM_SERVER", std::to_string(task.count(TaskRole::kServer))},
                      {"DMLC_NUM_WORKER", std::to_string(task.count(TaskRole::kWorker))},
                      {"DMLC_NODE_HOST", task.address().host},
                      {"PORT", task.port()},
                      {"DMLC_TASK_ID", position}};
  if (task.role() == TaskRole::kServer) variables.emplace_back("DMLC_SERVER_ID", position);
  if (task.role() == TaskRole::kWorker) variables.emplace_back("DMLC_WORKER_ID", position);
  return {variables, {}};
}

}  // namespace pscloud

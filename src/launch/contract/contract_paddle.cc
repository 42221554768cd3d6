#include "launch/contract/contract_makers.h"

namespace pscloud {
namespace {

const char* training_role(TaskRole role) { return role == TaskRole::kServer ? "PSERVER" : "TRAINER"; }

}  // namespace

// As PaddleCloudRoleMaker reads it. With servers it looks for its own POD_IP:PADDLE_PORT in their list; without any the
// trainers are a collective.
TaskContract paddle_contract(const ContractTask& task) {
  const std::string trainers = std::to_string(task.count(TaskRole::kWorker));
  Variables variables{{"TRAINING_ROLE", training_role(task.role())},
                      {"PADDLE_TRAINERS_NUM", trainers},
                      {"PADDLE_TRAINER_ENDPOINTS", task.list(TaskRole::kWorker)},
                      {"POD_IP", host_before_port(task.address())},
                      {"PADDLE_PORT", task.port()},
                      {"PADDLE_CURRENT_ENDPOINT", task.address().text()}};
  if (task.role() == TaskRole::kWorker) variables.emplace_back("PADDLE_TRAINER_ID", std::to_string(task.position()));
  if (task.has(TaskRole::kServer)) {
    const HostPlace place = host_place(task.tasks({TaskRole::kServer, TaskRole::kWorker}), task.id());
    variables.emplace_back("PADDLE_PSERVERS_IP_PORT_LIST", task.list(TaskRole::kServer));
    variables.emplace_back("PADDLE_ROLE", training_role(task.role()));
    variables.emplace_back("PADDLE_NNODES", std::to_string(place.hosts));
    return {variables, {}};
  }
  const HostPlace place = host_place(task.tasks({TaskRole::kWorker}), task.id());
  variables.emplace_back("PADDLE_MASTER", task.view().addresses(TaskRole::kWorker).front().text());
  variables.emplace_back("PADDLE_GLOBAL_SIZE", trainers);
  variables.emplace_back("PADDLE_GLOBAL_RANK", std::to_string(place.rank));
  variables.emplace_back("PADDLE_LOCAL_SIZE", std::to_string(place.local_size));
  variables.emplace_back("PADDLE_LOCAL_RANK", std::to_string(place.local_rank));
  variables.emplace_back("PADDLE_RANK_IN_NODE", std::to_string(place.local_rank));
  variables.emplace_back("PADDLE_NNODES", std::to_string(place.hosts));
  return {variables, {}};
}

// What the images of 2018 were given on Amazon's machines. The master was the tool's own service; here it is the task
// that the user runs as scheduler, if there is one.
TaskContract paddle2018_contract(const ContractTask& task) {
  const std::string servers = task.list(TaskRole::kServer);
  const std::string trainers = std::to_string(task.count(TaskRole::kWorker));
  const bool trains = task.role() == TaskRole::kWorker;
  const std::string index = std::to_string(trains ? task.position() : 0);
  Variables variables{{"TASK_NAME", task.run()},
                      {"PSERVER_HOSTS", servers},
                      {"PSERVERS", servers},
                      {"TRAINERS", trainers},
                      {"TRAINER_COUNT", trainers},
                      {"TRAINER_INDEX", index},
                      {"MASTER_ENDPOINT", task.list(TaskRole::kScheduler)}};
  if (task.role() != TaskRole::kScheduler) variables.emplace_back("TRAINING_ROLE", training_role(task.role()));
  if (task.role() == TaskRole::kServer) variables.emplace_back("SERVER_ENDPOINT", task.address().text());
  if (trains) variables.emplace_back("PADDLE_INIT_TRAINER_ID", index);
  return {variables, {}};
}

}  // namespace pscloud

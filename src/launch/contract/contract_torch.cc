#include "launch/contract/contract_makers.h"

namespace pscloud {

// What torchrun sets for its processes; and, as PET_*, what a torchrun reads that is the command itself. Who has rank 0
// holds the store that the others meet at: the chief, else the first server, as in PyTorch's examples of one.
TaskContract torch_contract(const ContractTask& task) {
  const auto world = task.tasks({TaskRole::kChief, TaskRole::kServer, TaskRole::kWorker});
  const HostPlace place = host_place(world, task.id());
  const std::string rank = std::to_string(place.rank);
  const std::string size = std::to_string(world.size());
  const std::string& master = world.front().address.host;
  const std::string master_port = std::to_string(world.front().address.port);
  return {{{"MASTER_ADDR", master},
           {"MASTER_PORT", master_port},
           {"RANK", rank},
           {"WORLD_SIZE", size},
           {"LOCAL_RANK", std::to_string(place.local_rank)},
           {"LOCAL_WORLD_SIZE", std::to_string(place.local_size)},
           {"GROUP_RANK", std::to_string(place.host)},
           {"GROUP_WORLD_SIZE", std::to_string(place.hosts)},
           {"ROLE_NAME", role_name(task.role())},
           {"ROLE_RANK", std::to_string(task.position())},
           {"ROLE_WORLD_SIZE", std::to_string(task.count(task.role()))},
           {"TORCHELASTIC_RUN_ID", task.view().job},
           {"TORCHELASTIC_RESTART_COUNT", "0"},
           {"TORCHELASTIC_MAX_RESTARTS", "0"},
           {"PET_NNODES", size},
           {"PET_NODE_RANK", rank},
           {"PET_MASTER_ADDR", master},
           {"PET_MASTER_PORT", master_port}},
          {}};
}

}  // namespace pscloud

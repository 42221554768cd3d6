#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include "launch/contract/contract.h"

namespace pscloud {

// A task among the others, in the words that most contracts need. Borrows the view and the name.
class ContractTask {
 public:
  ContractTask(const ClusterView& view, TaskId self, const std::string& run);

  const ClusterView& view() const { return view_; }
  TaskId id() const { return self_; }
  TaskRole role() const { return self_.role; }
  const std::string& run() const { return run_; }
  const Address& address() const { return *address_; }
  std::string port() const { return std::to_string(address_->port); }

  // Where it stands among those of its role. Not the number in its name if one before it is not there.
  int position() const;
  int count(TaskRole role) const;
  bool has(TaskRole role) const { return count(role) > 0; }
  // Those of the roles, role after role.
  std::vector<TaskAddress> tasks(std::initializer_list<TaskRole> roles) const;
  // "10.0.0.3:20017,10.0.0.4:20311", in the order of positions.
  std::string list(TaskRole role) const;

 private:
  const ClusterView& view_;
  const TaskId self_;
  const std::string& run_;
  const Address* address_;
};

// Where a task is among `tasks`, if those with one host are on one machine.
struct HostPlace {
  int rank = 0;  // among all
  int local_rank = 0;
  int local_size = 0;
  int host = 0;  // machines have numbers in the order of the ranks that they have first
  int hosts = 0;
};
HostPlace host_place(const std::vector<TaskAddress>& tasks, TaskId self);

// The host as it stands before the port in Address::text(), so that both can be put together again.
std::string host_before_port(const Address& address);

// One for each framework; contract.cc adds what all of them have.
TaskContract pscloud_contract(const ContractTask& task);
TaskContract tensorflow_contract(const ContractTask& task);
TaskContract paddle_contract(const ContractTask& task);
TaskContract paddle2018_contract(const ContractTask& task);
TaskContract dmlc_contract(const ContractTask& task);
TaskContract poseidon_contract(const ContractTask& task);
TaskContract torch_contract(const ContractTask& task);

}  // namespace pscloud

#include <algorithm>
#include <array>
#include <set>

#include "base/json.h"
#include "launch/contract/contract_makers.h"

namespace pscloud {
namespace {

// What TensorFlow calls them.
struct TensorflowJob {
  TaskRole role;
  const char* name;
};
constexpr std::array kTensorflowJobs = {
    TensorflowJob{TaskRole::kChief, "chief"}, TensorflowJob{TaskRole::kWorker, "worker"},
    TensorflowJob{TaskRole::kServer, "ps"}, TensorflowJob{TaskRole::kEvaluator, "evaluator"}};

// Those who train connect to everybody in `cluster` and would wait for an evaluator for ever, since it is no server;
// only the evaluator itself must find its place there.
bool is_listed(TaskRole role, const ContractTask& task) {
  return task.has(role) && (role != TaskRole::kEvaluator || task.role() == TaskRole::kEvaluator);
}

std::string tf_config(const ContractTask& task) {
  JsonWriter json;
  json.begin_object().key("cluster").begin_object();
  for (const auto& [role, name] : kTensorflowJobs) {
    if (!is_listed(role, task)) continue;
    json.key(name).begin_array();
    for (const Address& address : task.view().addresses(role)) json.value(address.text());
    json.end_array();
  }
  const auto mine = std::ranges::find(kTensorflowJobs, task.role(), &TensorflowJob::role);
  json.end_object().key("task").begin_object().field("type", mine->name).field("index", task.position()).end_object();
  return json.end_object().text();
}

// gRPC asks the proxy of http_proxy also for machines of the cluster, unless it is told their names.
std::string hosts_of(const ClusterView& view) {
  std::set<std::string> hosts;
  for (const TaskAddress& one : view.tasks) hosts.insert(one.address.host);
  std::string text;
  for (const std::string& host : hosts) text += (text.empty() ? "" : ",") + host;
  return text;
}

}  // namespace

TaskContract tensorflow_contract(const ContractTask& task) {
  Variables variables{
      {"TF_CONFIG", tf_config(task)}, {"GRPC_FAIL_FAST", "use_caller"}, {"no_grpc_proxy", hosts_of(task.view())}};
  // It would take all of each GPU's memory, for variables that live in the machine's.
  if (task.role() == TaskRole::kServer) variables.emplace_back("CUDA_VISIBLE_DEVICES", "");
  return {variables, {}};
}

}  // namespace pscloud

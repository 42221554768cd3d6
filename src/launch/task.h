#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "net/address.h"
#include "pscloud/error.h"

namespace pscloud {

class JsonValue;

// What a process is for in a job of any system: "server" is what TensorFlow calls ps and Paddle pserver.
enum class TaskRole : uint8_t { kScheduler, kServer, kChief, kWorker, kEvaluator };
const char* role_name(TaskRole role);
Result<TaskRole> parse_role(std::string_view name);

// One process of a job, "worker-3": in logs, files, labels and commands.
struct TaskId {
  TaskRole role = TaskRole::kWorker;
  int index = 0;

  std::string text() const;
  auto operator<=>(const TaskId&) const = default;
};
Result<TaskId> parse_task_id(std::string_view text);

// Whose names for roles, addresses and numbers a program reads (contract.h).
enum class Framework : uint8_t { kPscloud, kTensorflow, kPaddle, kPaddle2018, kDmlc, kPoseidon, kTorch };
const char* framework_name(Framework framework);
Result<Framework> parse_framework(std::string_view name);  // kInvalid lists them

using Variables = std::vector<std::pair<std::string, std::string>>;  // NAME, value
// Adds it, or replaces its value: each name stands once, and later words win.
void put_variable(Variables& variables, const std::string& name, const std::string& value);

// A small file that only its task may read, such as a key: mode 0600 in a folder of the task's own (0700).
struct TaskFile {
  std::string name;  // relative, "tls/node.key"
  std::string content;
  std::string variable;  // if not empty: set to the file's path, or to that of its folder if `name_folder`
  bool name_folder = false;
};

// All that the machine of a task must know to run it. Travels as JSON over a pipe, or in a file of mode 0600: never on
// a command line, which everybody on the machine can read.
struct TaskSpec {
  std::string job;  // unique: a folder or an address of an older job never counts
  std::string run;
  TaskId id;
  int attempt = 0;
  Framework framework = Framework::kPscloud;
  std::vector<std::string> command;  // argv as it is: no shell reads it
  Variables environment;             // beside what the contract says
  std::vector<TaskFile> files;
  std::string folder;          // to work in; empty: where the agent was started
  std::string private_folder;  // for `files`: the agent makes it (0700) and removes it at the end; empty: it finds one
  uint16_t port = 0;           // that it must have; 0: any
  std::string advertise;       // host or interface to be reached at; empty: the agent finds out
  int stop_grace_ms = 30000;   // from SIGTERM to SIGKILL
  int arrive_timeout_ms = 300000;  // for the others to be there
  bool spot = false;               // its machine may be taken away: the agent looks for a notice
};
// Of a task with `spot`: names a file that is there once it is known that the machine is taken away, with the time
// (Unix) of that.
inline constexpr const char* kNoticeVariable = "PSCLOUD_NOTICE";

std::string task_spec_json(const TaskSpec& spec);
Result<TaskSpec> parse_task_spec(std::string_view json);
Result<TaskSpec> parse_task_spec(const JsonValue& value);

// Who is where. One text for each address, the same for everybody.
struct TaskAddress {
  TaskId id;
  Address address;
};
struct ClusterView {
  std::string job;
  std::vector<TaskAddress> tasks;  // in the order of TaskId

  // Those of a role, in the order of their indices.
  std::vector<Address> addresses(TaskRole role) const;
  const Address* find(TaskId id) const;
};
std::string cluster_view_json(const ClusterView& view);
Result<ClusterView> parse_cluster_view(std::string_view json);
Result<ClusterView> parse_cluster_view(const JsonValue& value);

}  // namespace pscloud

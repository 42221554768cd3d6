#pragma once

#include <string>
#include <string_view>

#include "launch/process/own_program.h"
#include "launch/task.h"
#include "pscloud/error.h"

namespace pscloud {

// What stands in the files of a SharedFolder: docs/rendezvous.md. Every file names its job: one of another job does not
// count, whatever its name.

// ep.<task>.<attempt>.json: a task can be reached.
struct Arrival {
  std::string job;
  TaskId task;
  int attempt = 0;
  Address address;
  std::string host;
  int64_t pid = 0;  // of the task's agent there
  std::string version = own_version();
};
std::string arrival_json(const Arrival& arrival);
Result<Arrival> parse_arrival(std::string_view json);

// stop.<task>.json, abort.json, done.json, and leader.json, which orders nothing.
struct FolderOrder {
  std::string job;
  bool at_once = false;     // of stop: SIGKILL
  std::string reason = {};  // of abort
  int code = 1;             // of abort: the exit code of those whom it ends
};
std::string folder_order_json(const FolderOrder& order);
Result<FolderOrder> parse_folder_order(std::string_view json);

}  // namespace pscloud

#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "pscloud/error.h"

namespace pscloud {

// A process to be. Its group is its own, so that Ctrl-C in a terminal reaches only us; it gets an empty signal mask,
// and no descriptor but these three.
struct SpawnSpec {
  std::string program;  // a path
  std::vector<std::string> arguments;
  std::vector<std::string> environment;  // "NAME=value", all of it
  std::string folder;                    // to work in; empty: ours
  int stdin_fd = -1;                     // -1: nothing to read
  int stdout_fd = -1;                    // -1: ours
  int stderr_fd = -1;                    // -1: ours
  bool own_session = false;              // without a terminal too
  // SIGKILL when the thread that calls spawn() ends, however that may happen: so when this process does, if that
  // thread is the main one.
  bool dies_with_us = false;
  // Called while the new process exists and does not run its program yet. If it fails there is no process.
  std::function<Result<>(pid_t)> before_it_runs = {};
};

// kNotFound or kInvalid if the program cannot be run, kUnavailable if there can be no process at all.
Result<pid_t> spawn(const SpawnSpec& spec);

// A variable of our own environment; empty if it is not there.
std::string own_variable(const char* name);

// Our environment, without what would tell a new process that it is a node: PSCLOUD_* and DMLC_*.
std::vector<std::string> inherited_environment();

// Adds "NAME=value", in the place of an older one.
void set_variable(std::vector<std::string>& environment, std::string_view name, std::string_view value);
void unset_variable(std::vector<std::string>& environment, std::string_view name);
// Empty if it is not there.
std::string variable_of(const std::vector<std::string>& environment, std::string_view name);

}  // namespace pscloud

#pragma once

#include <chrono>
#include <functional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "launch/cluster_file.h"

namespace pscloud {

struct MachineWaitOptions {
  std::string ssh_config;
  std::function<void(std::string_view)> say = [](std::string_view) {};
  std::function<bool()> cancelled = {};
  std::chrono::steady_clock::time_point deadline;
  std::chrono::milliseconds idle{0};  // after which machines that hear nothing end themselves; 0: they do not
  // What a machine that nobody reaches has said elsewhere, with a line above it, for the end of a message.
  std::function<std::string(const Host&)> console = [](const Host&) { return std::string(); };
};

// Waits until each machine is reached by ssh and its user-data has ended well; takes the host keys of machines that
// were never seen. Asks all of them at the same time, and tells of each what changes. Each hears a word meanwhile,
// those that are ready as well. One that failed ends it, with the end of its log; when the time is over, those that are
// missing are named, and what is known of them: of the first few the end of the log as well, or of the console if ssh
// does not reach them.
Result<> wait_for_machines(const std::vector<Host>& machines, const MachineWaitOptions& options);

// Runs a command on each, which reads `input`. The lines name those where it did not end well. Once a stop is asked for
// it waits for none of them.
std::vector<std::string> tell_machines(const std::vector<Host>& machines, const std::string& ssh_config,
                                       const std::string& command, const std::string& input,
                                       const std::stop_token& stop = {});

// The end of what a machine has written while it was set up, with a line above it, for the end of a message.
std::string machine_log_tail(const Host& machine, const std::string& ssh_config);

// Touches the file that keeps a machine alive, on each. The lines name those that were not reached.
std::vector<std::string> keep_machines(const std::vector<Host>& machines, const std::string& ssh_config,
                                       const std::stop_token& stop = {});

}  // namespace pscloud

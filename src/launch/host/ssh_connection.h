#pragma once

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "launch/agent/agent_hosts.h"
#include "launch/bundle/bundle.h"
#include "launch/cluster_file.h"

namespace pscloud {

struct SshOptions {
  std::string config_file;            // of ssh; empty: the user's
  bool accept_new_host_keys = false;  // of hosts that were never seen; one that has changed is never accepted
  std::string control_folder;         // for the sockets of connections that are shared
  int lost_after_s = 30;              // without a word from the other side
};

// ssh to `host`, up to its name: a command may follow. No passwords, no forwarding, host keys checked. The first
// connection to a host is the master, through which the others go as long as it is there.
std::vector<std::string> ssh_command(const Host& host, const SshOptions& options, bool master);

// What ssh says, and what to do about it.
std::string explain_ssh(const Host& host, const std::string& complaints, const std::string& why);

// Starts an agent on each host, all at the same time, over one connection each, and adds it to `agents`. Copies the
// bundle to where it is missing. The only command that a shell there reads is a text that is always the same; the rest
// goes through its stdin. A host called "localhost" is this machine: its agent is started without ssh. The lines that
// come back, by host, say who could not be reached, and what to do. A host that takes the bundle has as long as there
// is until `deadline` from each piece that it takes: a slow line may need long for the whole.
Result<std::map<std::string, std::string>> open_agents(const std::vector<Host>& hosts, const SshOptions& options,
                                                       AgentHosts& agents,
                                                       std::chrono::steady_clock::time_point deadline);

// Starts this program with `words` on one host in the same way, and gives its stdin and stdout. None of the words may
// have a space in it. The deadline is as above. `environment` is for a program on this machine; one elsewhere has that
// of its login.
Result<AgentConnection> open_program(const Host& host, const SshOptions& options, const std::vector<std::string>& words,
                                     std::vector<std::string> environment,
                                     std::chrono::steady_clock::time_point deadline);

}  // namespace pscloud

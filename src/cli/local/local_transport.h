#pragma once

#include <string>

#include "pscloud/error.h"

namespace CLI {
class App;
}

namespace pscloud {

// How the nodes of a job on this machine talk.
struct LocalTransport {
  std::string name = "auto";
  bool lent = false;           // push from memory that servers read in place, and read in theirs
  std::string processes = "";  // own or threads; empty chooses

  bool shared_memory() const { return name == "auto" || name == "shm"; }
  // Servers and workers are processes of their own, not threads of this one.
  bool own_processes() const { return processes != "threads" && name != "inproc"; }
};

// The flags that every `pscloud bench` shares: --transport, and --processes where `with_processes`.
void add_transport_flags(CLI::App& verb, LocalTransport& transport, bool with_processes);

// kInvalid names what is there instead, if this program cannot do what was asked for.
Result<> check_transport(const LocalTransport& transport);

}  // namespace pscloud

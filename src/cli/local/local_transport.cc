#include "cli/local/local_transport.h"

#include <CLI/CLI.hpp>

#include "cli/bench/bench_flags.h"

namespace pscloud {
namespace {

constexpr const char* kTransports[] = {"auto", "inproc", "shm", "tcp", "tls"};

}  // namespace

void add_transport_flags(CLI::App& verb, LocalTransport& transport, bool with_processes) {
  const std::vector<std::string> names(std::begin(kTransports), std::end(kTransports));
  add_choice(verb, "--transport", transport.name, names, "auto, inproc, shm, tcp or tls [auto]", "NAME");
  if (!with_processes) return;
  verb.add_flag("--lent", transport.lent, "push from memory that servers read in place, and read the sums in theirs");
  add_choice(verb, "--processes", transport.processes, {"own", "threads"},
             "own: each node is one; threads: all in this one [own]", "WHICH");
}

Result<> check_transport(const LocalTransport& transport) {
  if (transport.lent && !transport.shared_memory()) {
    return invalid("--lent needs shared memory: choose --transport shm; {} copies", transport.name);
  }
  if (transport.name == "inproc" && transport.processes == "own") {
    return invalid("--transport inproc is threads of one process: choose shm, tcp or tls for --processes own");
  }
  return {};
}

}  // namespace pscloud

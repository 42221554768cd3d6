#include "cli/bench_transport.h"

#include <CLI/CLI.hpp>

#include "cli/bench_flags.h"

namespace pscloud {
namespace {

struct Transport {
  const char* name;
  bool here;
};
// Shared memory is switched on here: set `here`, let BenchTransport::name begin as "auto", and let BenchCluster
// (bench_cluster.cc) give its nodes the option that chooses it. What `auto` came to is asked of the Worker.
constexpr Transport kTransports[] = {{"auto", false}, {"inproc", true}, {"shm", false}, {"tcp", true}, {"tls", true}};
// Lent buffers: set this, and let AdderWorker (bench_adder_worker.cc) take its two buffers from the Worker.
constexpr bool kLentIsHere = false;

}  // namespace

void add_transport_flags(CLI::App& verb, BenchTransport& transport, bool with_processes) {
  std::vector<std::string> names;
  for (const Transport& known : kTransports) names.emplace_back(known.name);
  add_choice(verb, "--transport", transport.name, names, "auto, inproc, shm, tcp or tls [tcp]", "NAME");
  if (!with_processes) return;
  verb.add_flag("--lent", transport.lent, "work in buffers that the servers read and write in place");
  add_choice(verb, "--processes", transport.processes, {"own", "threads"},
             "own: each node is one; threads: all in this one [own]", "WHICH");
}

Result<> check_transport(const BenchTransport& transport) {
  for (const Transport& known : kTransports) {
    if (known.name == transport.name && !known.here) {
      return invalid("--transport {} is not there yet: choose inproc, tcp or tls", transport.name);
    }
  }
  if (transport.lent && !kLentIsHere) {
    return invalid("--lent needs shared memory, which is not there yet: leave it out; inproc, tcp and tls copy");
  }
  if (transport.name == "inproc" && transport.processes == "own") {
    return invalid("--transport inproc is threads of one process: choose tcp or tls for --processes own");
  }
  return {};
}

}  // namespace pscloud

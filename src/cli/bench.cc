#include <CLI/CLI.hpp>

#include "cli/bench_verb.h"
#include "cli/raw_socket.h"

namespace pscloud {
namespace {

constexpr const char* kBenchAbout = R"(Each starts what it needs on this machine and leaves nothing behind. Each also
measures, in the same run, what the same work costs at least on this machine,
and says how far away it was.)";

struct BenchVerb {
  const char* name;
  const char* help;
  void (*add)(CLI::App& verb, Action& action);
};
constexpr BenchVerb kVerbs[] = {
    {"adder", "large dense pushes and pulls, every value checked", add_bench_adder},
    {"sparse", "push_pull of many single keys of a large table", add_bench_sparse},
    {"rpc", "small pulls: round trips, and how many a second", add_bench_rpc},
    {"limits", "what memory and sockets of this machine can do", add_bench_limits},
};

}  // namespace

void add_bench(CLI::App& verb, Action& action) {
  for (const BenchVerb& bench : kVerbs) {
    bench.add(*verb.add_subcommand(bench.name, bench.help)->group("Verbs"), action);
  }
  // Not for people: the process at the other end of a raw socket.
  verb.add_subcommand("raw-socket-peer")->group("")->callback([&action] { action = run_raw_socket_peer; });
  verb.footer(kBenchAbout);  // last, or the verbs above would inherit it
}

}  // namespace pscloud

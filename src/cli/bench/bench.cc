#include <CLI/CLI.hpp>
#include <limits>
#include <memory>

#include "cli/bench/bench_verb.h"
#include "cli/bench/raw_socket.h"

namespace pscloud {
namespace {

constexpr const char* kBenchAbout = R"(Each starts what it needs on this machine (adder also on a cluster, and beside
other systems) and leaves nothing behind. Each also measures, in the same run,
what the same work costs at least on this machine, and says how far away it
was.)";

struct BenchVerb {
  const char* name;
  const char* help;
  void (*add)(CLI::App& verb, Action& action);
};
constexpr BenchVerb kBenchVerbs[] = {
    {"adder", "large dense pushes and pulls, every value checked", add_bench_adder},
    {"sparse", "push_pull of many single keys of a large table", add_bench_sparse},
    {"rpc", "small pulls: round trips, and how many a second", add_bench_rpc},
    {"limits", "what memory and sockets of this machine can do", add_bench_limits},
};

}  // namespace

void add_bench(CLI::App& verb, Action& action) {
  for (const BenchVerb& bench : kBenchVerbs) {
    bench.add(*verb.add_subcommand(bench.name, bench.help)->group("Verbs"), action);
  }
  // Not for people: the process at the other end of a raw socket.
  const auto bytes_max = std::make_shared<uint64_t>(std::numeric_limits<uint64_t>::max());
  CLI::App* peer = verb.add_subcommand("raw-socket-peer")->group("");
  peer->add_option("--bytes-max", *bytes_max);
  peer->callback([bytes_max, &action] { action = [bytes_max] { return run_raw_socket_peer(*bytes_max); }; });
  verb.footer(kBenchAbout);  // last, or the verbs above would inherit it
}

}  // namespace pscloud

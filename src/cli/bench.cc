#include <CLI/CLI.hpp>

#include "cli/bench_adder.h"
#include "cli/verb.h"

namespace pscloud {

void add_bench(CLI::App& verb, Action& action) {
  verb.require_subcommand(1);
  add_bench_adder(*verb.add_subcommand("adder", "workers push ones, servers add, workers pull the sums"), action);
}

}  // namespace pscloud

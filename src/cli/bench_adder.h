#pragma once

#include "cli/verb.h"

namespace pscloud {

// psbench's workload: every worker pushes a tensor of ones, the servers add, every worker pulls the sum.
void add_bench_adder(CLI::App& verb, Action& action);

}  // namespace pscloud

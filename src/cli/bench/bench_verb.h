#pragma once

#include "cli/verb.h"

namespace pscloud {

// The verbs of `pscloud bench`, in files of their own.
void add_bench_adder(CLI::App& verb, Action& action);
void add_bench_limits(CLI::App& verb, Action& action);
void add_bench_rpc(CLI::App& verb, Action& action);
void add_bench_sparse(CLI::App& verb, Action& action);

}  // namespace pscloud

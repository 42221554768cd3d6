#pragma once

#include <functional>
#include <string>

#include "cli/bench/bench_adder_job.h"

namespace pscloud {

// One node of an adder that a launcher has started, on any machine: a server, or a worker that measures itself and
// tells what it found, in lines that AdderGather (bench_adder_gather.h) reads at the other end. The first worker also
// measures between rounds what the same bytes cost at least where it runs, and over a plain socket from there to the
// first server; meanwhile the others wait.

using SayLine = std::function<void(const std::string& line)>;

// Returns when all workers have come to their end.
Result<> run_adder_worker_task(const NodeOptions& options, const AdderFlags& flags, const SayLine& say);

// Serves until the job ends. The exit code. `first_worker` is where that one listens for the raw socket of the first
// server; empty: there is none. No thread may run yet.
int run_adder_server_task(const NodeOptions& options, const AdderPlan& plan, const std::string& first_worker);

}  // namespace pscloud

#pragma once

#include <string>

#include "cli/bench_adder_job.h"

namespace pscloud {

// What an adder came to, in the words that reports use.
std::string adder_json(const AdderFlags& flags, const AdderOutcome& outcome);
std::string adder_text(const AdderFlags& flags, const AdderOutcome& outcome);

// Writes each step of the first worker to flags.tensorboard: worker_push, worker_fetch and iteration_ms in
// milliseconds, rate in MB/s, both directions. `start_s` is when the first step began, in seconds since 1970.
Result<> write_tensorboard(const AdderFlags& flags, const AdderOutcome& outcome, double start_s);

}  // namespace pscloud

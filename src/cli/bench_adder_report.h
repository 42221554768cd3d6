#pragma once

#include <string>

#include "cli/bench_adder_job.h"

namespace pscloud {

// What an adder came to, in the words that reports use.
std::string adder_json(const AdderFlags& flags, const AdderOutcome& outcome);
std::string adder_text(const AdderFlags& flags, const AdderOutcome& outcome);

// Writes each step of the first worker to flags.tensorboard, under psbench's names: time/step, time/worker_push and
// time/worker_fetch in milliseconds, local_rate and global_rate (of all workers) in MB/s, both directions. `start_s` is
// when the first step began, in seconds since 1970.
Result<> write_tensorboard(const AdderFlags& flags, const AdderOutcome& outcome, double start_s);

}  // namespace pscloud

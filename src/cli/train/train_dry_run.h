#pragma once

#include "cli/train/train_job.h"

namespace pscloud {

// Says what a job would read, start and need, by a look at the config and some megabytes of the data. Starts and writes
// nothing. Returns the exit code.
int show_dry_run(const TrainJob& job, const TrainSettings& settings, bool json);

}  // namespace pscloud

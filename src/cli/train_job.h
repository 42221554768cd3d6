#pragma once

#include <functional>

#include "cli/config_flags.h"
#include "cli/line_channel.h"
#include "learn/online_trainer.h"
#include "pscloud/node.h"

namespace pscloud {

// What to train, and on what.
struct TrainJob {
  ConfigFlags config;
  int servers = 0;  // processes; 0: all in this process
  int workers = 0;  // processes
  int threads = 1;  // that train, in this process or in each worker's
};

// What the config and the flags say. kInvalid with the place in the file.
Result<OnlineSettings> train_settings(const TrainJob& job);

using ShowProgress = std::function<void(const OnlineProgress&)>;  // from any thread

// On this machine: starts servers and workers, and returns when the model is there.
Result<OnlineProgress> run_train_job(const TrainJob& job, const ShowProgress& show, const Cancelled& cancelled);

// Takes part in a job that others have started: `threads` workers that join by `options`.
Result<OnlineProgress> join_train_job(const OnlineSettings& settings, const NodeOptions& options, int threads,
                                      const ShowProgress& show, const Cancelled& cancelled);

}  // namespace pscloud

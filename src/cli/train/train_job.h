#pragma once

#include <functional>
#include <variant>

#include "cli/local/line_channel.h"
#include "cli/local/worker_process.h"
#include "cli/train/config_flags.h"
#include "learn/batch_trainer.h"
#include "learn/online_trainer.h"
#include "pscloud/node.h"

namespace pscloud {

// What to train, and on what.
struct TrainJob {
  ConfigFlags config;
  WorkerCounts counts;
  bool resume = false;
};

// What the config and the flags say. kInvalid with the place in the file.
using TrainSettings = std::variant<OnlineSettings, BatchSettings>;
Result<TrainSettings> train_settings(const TrainJob& job);

// What the config asks for and will not get, each beginning with the field: two runs that are the same to the byte,
// through filters that draw random numbers.
std::vector<std::string> warnings_of(const TrainSettings& settings);

// Whether the model can be written where it is to go; as far as can be told before it is.
Result<> check_model_output(const TrainSettings& settings, const Cancelled& cancelled);

// Whether there are files to train on and to validate by, as this machine sees it. With the place in the config.
Result<> check_data_files(const ConfigFlags& config, const TrainSettings& settings, FileStore& store);

// Whether there are, and something to resume from, and the model can be written, as this machine sees it.
Result<> check_train_files(const ConfigFlags& config, const TrainSettings& settings, const Cancelled& cancelled);

using TrainProgress = std::variant<OnlineProgress, BatchProgress>;
using ShowProgress = std::function<void(const TrainProgress&)>;  // from any thread

// On this machine, after check_train_files(): starts servers and workers, and returns when the model is there.
Result<TrainProgress> run_train_job(const TrainJob& job, const TrainSettings& settings, const ShowProgress& show,
                                    const Cancelled& cancelled);

// Takes part in a job that others have started: `threads` workers that join by `options`. When `leaving` says so they
// end what they have at hand, and leave the rest to the others: kFailed.
Result<TrainProgress> join_train_job(const TrainSettings& settings, const NodeOptions& options, int threads,
                                     const ShowProgress& show, const Cancelled& cancelled,
                                     const std::function<bool()>& leaving = {});

}  // namespace pscloud

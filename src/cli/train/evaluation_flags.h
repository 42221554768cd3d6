#pragma once

#include "cli/local/line_channel.h"
#include "cli/train/config_flags.h"
#include "learn/evaluation.h"

namespace pscloud {

// What a config says about a model and examples to try it on. kInvalid with the place in the file.
Result<EvaluationSettings> read_evaluation_settings(const ConfigFlags& flags);

// kNotFound if there are no such files, as this machine sees them: there would be nothing to start for.
Result<> check_evaluation_files(const ConfigFlags& flags, const EvaluationSettings& settings,
                                const Cancelled& cancelled);

}  // namespace pscloud

#pragma once

#include "cli/train/config_flags.h"
#include "learn/evaluation.h"

namespace pscloud {

// What a config says about a model and examples to try it on. kNotFound if there are no such files: there would be
// nothing to start for.
Result<EvaluationSettings> read_evaluation_settings(const ConfigFlags& flags);

}  // namespace pscloud

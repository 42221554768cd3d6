#pragma once

#include <string>

#include "learn/evaluation.h"

namespace pscloud {

struct Predictions {
  uint64_t files = 0;
  uint64_t weights = 0;
  uint64_t examples = 0;
  uint64_t bad_lines = 0;
};

// kInvalid for examples that come more than once or in random order: the lines would not be theirs.
Result<> check_prediction(const EvaluationSettings& settings);

// Scores the examples of each file by a model: `<prefix>-0` has those of the first, a line each, in their order; lines
// that are no examples have none. Written is the chance of the first kind, 1 / (1 + exp(-score)), or the score itself.
// All workers of the job do the same and share the files; one of them calls `show` now and then. kInvalid as above.
Result<Predictions> predict(Worker& worker, FileStore& store, const EvaluationSettings& settings,
                            const std::string& prefix, bool raw, const ShowReading& show = {});

}  // namespace pscloud

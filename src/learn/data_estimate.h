#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "data/parser.h"
#include "io/file_store.h"
#include "learn/data_selection.h"

namespace pscloud {

// What some megabytes of files tell about all of them.
struct DataEstimate {
  uint64_t files = 0;
  uint64_t bytes = 0;    // as the files are stored
  uint64_t sampled = 0;  // examples
  double examples = 0;   // of a pass
  double features = 0;   // of an example
  double keys = 0;       // different ones
  double minibatch_keys = 0;
};

// `workers`: that will share the files. Reads about `sample_bytes` of them, here and there. kInvalid if these have no
// examples.
Result<DataEstimate> estimate_data(FileStore& store, std::span<const std::string> patterns, TextFormat format,
                                   const DataSelection& selection, int workers, uint32_t minibatch,
                                   uint64_t sample_bytes = 16 << 20);

}  // namespace pscloud

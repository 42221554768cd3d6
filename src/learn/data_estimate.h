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
  uint64_t bytes = 0;      // as the files are stored
  uint64_t sampled = 0;    // examples
  double examples = 0;     // of a pass
  double features = 0;     // of an example
  double keys = 0;         // different ones
  double common_keys = 0;  // of these
  double embedded_keys = 0;
  double parts = 0;        // that workers take one by one
  double worker_keys = 0;  // of the examples of one worker that has some
  double minibatch = 0;    // examples of one: those of a part may be fewer than wanted
  double minibatch_keys = 0;
  bool has_values = false;  // else all are 1
  bool has_groups = false;
};

// What to look at, and how.
struct EstimateOptions {
  ExampleFormat format = ExampleFormat::kLibsvm;
  bool ignore_groups = true;
  DataSelection selection = {};
  int workers = 1;              // that will share the files
  uint32_t minibatch = 1000;    // rows, at most
  uint32_t common_above = 0;    // times that a key must come in a pass, and more, to be common,
  uint32_t embedded_above = 0;  // and to have an embedding
  uint64_t sample_bytes = 16 << 20;
};

// Reads about `sample_bytes` of the files, here and there. kInvalid if these have no examples.
Result<DataEstimate> estimate_data(FileStore& store, std::span<const std::string> patterns,
                                   const EstimateOptions& options);

}  // namespace pscloud

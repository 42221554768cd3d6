#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "data/parser.h"
#include "learn/checkpoint_settings.h"
#include "learn/data_selection.h"
#include "learn/embedding_settings.h"
#include "learn/loss.h"
#include "learn/model_format.h"
#include "learn/shared_settings.h"
#include "learn/tail_filter.h"
#include "pscloud/error.h"
#include "pscloud/table.h"

namespace PS::LM {
class Config;
}

namespace pscloud {

// What a config says about online training, checked and in our own words.
struct OnlineSettings {
  std::vector<std::string> files;  // patterns
  ExampleFormat format = ExampleFormat::kLibsvm;
  DataSelection selection;
  ValidationSettings validation;           // after each pass
  std::vector<std::string> initial_model;  // patterns; none: weights begin at zero
  std::optional<ModelOutput> model;
  CheckpointSettings checkpoint;
  Loss loss = Loss::kLogit;
  TableSpec table;                              // of the weights
  std::optional<EmbeddingSettings> embeddings;  // of a factorization machine; else the model is linear
  TailSettings tail;
  uint64_t tail_cells = 100'000'000;  // of the sketch that counts
  uint32_t minibatch = 1000;          // examples
  uint32_t passes = 1;                // over the data
  uint32_t max_delay = 0;             // minibatches begun before an earlier one's push has arrived
  bool synchronous = false;           // all workers go in step: the model is the same in each run
  std::string cache_prefix;           // what was read is kept in files of these names, for the next run too; or not
  bool cache_passes = true;           // without them: in a temporary place, if it is wanted again in this run
  uint64_t ahead_bytes_max = 1'000'000'000;  // of a distant file, that are read ahead
  uint32_t report_seconds = 1;               // between two lines of progress
  bool strict = false;                       // a bad line ends the run; else it is counted and left out

  // Examples will be wanted more than once.
  bool has_further_passes() const { return passes > 1 || selection.replica > 1; }
};

// kInvalid names the field that is wrong, missing, or asks for what there is not.
Result<OnlineSettings> online_settings(const PS::LM::Config& config);

}  // namespace pscloud

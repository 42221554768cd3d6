#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "data/parser.h"
#include "learn/checkpoint_settings.h"
#include "learn/data_selection.h"
#include "learn/descent.h"
#include "learn/model_format.h"
#include "learn/shared_settings.h"
#include "learn/tail_filter.h"
#include "pscloud/error.h"
#include "pscloud/table.h"

namespace PS::LM {
class Config;
}

namespace pscloud {

// What weights are before the first iteration.
struct StartWeights {
  double mean = 0;
  double stddev = 0;               // normal, by the key
  std::vector<std::string> files;  // of a model, patterns; instead of the two above
};

// What a config says about batch training, checked and in our own words.
struct BatchSettings {
  static constexpr double kBlocksPerFeature = 4;

  std::vector<std::string> files;  // patterns
  ExampleFormat format = ExampleFormat::kLibsvm;
  DataSelection selection;
  bool ignore_groups = false;
  bool strict = false;                       // a bad line ends the run; else it is counted and left out
  uint64_t ahead_bytes_max = 1'000'000'000;  // of a distant file, that are read ahead
  std::string cache_prefix;                  // parsed data are kept in files of these names; empty: they are not
  std::optional<ModelOutput> model;
  uint32_t save_every = 0;  // iterations, besides the end
  CheckpointSettings checkpoint;

  StartWeights start;
  DescentOptions descent;
  double kkt_ratio = 10;
  // If it is not said, few features are not in blocks at all, but move together.
  std::optional<double> blocks_per_feature;
  bool random_order = true;
  uint32_t max_delay = 0;  // blocks begun before an earlier one is finished
  uint32_t iterations = 10;
  double epsilon = 1e-4;
  std::vector<uint16_t> prior_groups;
  uint32_t prior_sweeps = 5;
  TailSettings tail;
  double tail_cells_per_key = 2;
  std::vector<FilterSpec> filters;
  ValidationSettings validation;       // after each iteration
  std::vector<std::string> no_effect;  // fields that the config says in vain, and why
};

// kInvalid names the field that is wrong, missing, or asks for what there is not.
Result<BatchSettings> batch_settings(const PS::LM::Config& config);

}  // namespace pscloud

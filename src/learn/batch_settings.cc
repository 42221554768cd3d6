#include "learn/batch_settings.h"

#include <cmath>

#include "learn/config.pb.h"
#include "learn/data_settings.h"
#include "learn/shared_settings.h"

namespace pscloud {
namespace {

using PS::LM::BCDConfig;
using PS::LM::Config;
using PS::LM::DataConfig;
using PS::LM::LearningRateConfig;
using PS::LM::ParamInitConfig;

constexpr int32_t kGroupsMax = 1 << 16;

Result<double> above_zero(double value, const char* field) {
  if (!(value > 0) || std::isinf(value)) return invalid("{} is {}, must be above 0", field, value);
  return value;
}

Result<DescentOptions> descent_of(const Config& config) {
  const BCDConfig& darlin = config.darlin();
  DescentOptions options;
  if (TRY(loss_of(config)) != Loss::kLogit) return invalid("loss.type: batch training has only LOGIT");
  const Penalty penalty = TRY(penalty_of(config));
  options.rule.lambda1 = penalty.lambda1;
  options.rule.lambda2 = penalty.lambda2;
  if (config.has_learning_rate()) {
    if (config.learning_rate().type() != LearningRateConfig::CONSTANT) {
      return invalid("learning_rate.type: batch training has only CONSTANT");
    }
    options.rule.rate = TRY(above_zero(config.learning_rate().alpha(), "learning_rate.alpha"));
  }
  options.delta = TRY(above_zero(darlin.GetExtension(PS::LM::delta_init_value), "darlin.delta_init_value"));
  options.rule.delta_max = TRY(above_zero(darlin.GetExtension(PS::LM::delta_max_value), "darlin.delta_max_value"));
  return options;
}

Result<StartWeights> start_of(const Config& config) {
  const ParamInitConfig& init = config.darlin().init_w();
  StartWeights start;
  if (config.has_model_input()) {
    if (config.darlin().has_init_w())
      return invalid("model_input and darlin.init_w: which of them shall it begin with?");
    start.files = TRY(model_input(config.model_input()));
    return start;
  }
  switch (init.type()) {
    case ParamInitConfig::ZERO:
    case ParamInitConfig::CLONE: return start;  // of what servers have, which is nothing: no_effect says so
    case ParamInitConfig::CONSTANT: start.mean = init.constant(); break;
    case ParamInitConfig::GAUSSIAN:
      start.mean = init.mean();
      start.stddev = init.std();
      break;
    case ParamInitConfig::FILE:
      if (init.file_name().empty()) return invalid("darlin.init_w.file_name is missing");
      start.files = {init.file_name()};
      return start;
  }
  if (!std::isfinite(start.mean) || !std::isfinite(start.stddev) || start.stddev < 0) {
    return invalid("darlin.init_w: normal with mean {} and std {}", start.mean, start.stddev);
  }
  return start;
}

Result<> read_order(const BCDConfig& darlin, BatchSettings& settings) {
  if (darlin.has_feature_block_ratio()) {
    settings.blocks_per_feature = TRY(above_zero(darlin.feature_block_ratio(), "darlin.feature_block_ratio"));
  }
  settings.random_order = darlin.random_feature_block_order();
  settings.max_delay = TRY(at_least(darlin.max_block_delay(), 0, "darlin.max_block_delay"));
  settings.prior_sweeps =
      TRY(at_least(darlin.num_iter_for_prior_fea_group(), 0, "darlin.num_iter_for_prior_fea_group"));
  for (int i = 0; i < darlin.prior_fea_group_size(); ++i) {
    const int32_t group = darlin.prior_fea_group(i);
    if (group < 0 || group >= kGroupsMax) {
      return invalid("{} is {}, must be 0 to {}", one_of("darlin.prior_fea_group", i, darlin.prior_fea_group_size()),
                     group, kGroupsMax - 1);
    }
    settings.prior_groups.push_back(static_cast<uint16_t>(group));
  }
  return {};
}

}  // namespace

Result<BatchSettings> batch_settings(const Config& config) {
  if (!config.has_darlin()) return invalid("darlin is missing: there is nothing to train in batch");
  if (config.has_async_sgd()) return invalid("darlin trains in batch, async_sgd online: leave one of them out");
  if (!config.has_training_data()) return invalid("training_data is missing");
  if (config.has_factorization_machine()) {
    return invalid("factorization_machine is trained online: it needs async_sgd instead of darlin");
  }
  const BCDConfig& darlin = config.darlin();
  const DataConfig& data = config.training_data();
  if (darlin.load_local_data()) return invalid("darlin.load_local_data: workers share the files that all of them see");

  BatchSettings settings;
  settings.files.assign(data.file().begin(), data.file().end());
  settings.selection = TRY(data_selection(data, "training_data"));
  settings.format = TRY(example_format(data, "training_data"));
  settings.ignore_groups = data.ignore_feature_group();
  if (darlin.has_local_cache())
    settings.cache_prefix = TRY(cache_prefix_of(darlin.local_cache(), "darlin.local_cache"));
  settings.ahead_bytes_max = TRY(megabytes_of(darlin.max_data_buf_size_in_mb(), "darlin.max_data_buf_size_in_mb"));
  if (darlin.has_max_num_parallel_groups_in_preprocessing()) {
    settings.no_effect.emplace_back(
        "darlin.max_num_parallel_groups_in_preprocessing has no effect: all groups are preprocessed together");
  }
  if (darlin.init_w().type() == ParamInitConfig::CLONE) {
    settings.no_effect.emplace_back(
        "darlin.init_w.type CLONE has no effect: the servers have nothing yet, and it begins with ZERO; model_input "
        "names "
        "a model to begin with");
  }
  settings.validation = TRY(validation_of(config));
  settings.model = TRY(model_output_of(config));
  settings.checkpoint = TRY(checkpoint_settings(config));
  settings.save_every = TRY(at_least(darlin.save_model_every_n_iter(), 0, "darlin.save_model_every_n_iter"));
  settings.start = TRY(start_of(config));
  settings.descent = TRY(descent_of(config));
  settings.kkt_ratio =
      TRY(above_zero(darlin.GetExtension(PS::LM::kkt_filter_threshold_ratio), "darlin.kkt_filter_threshold_ratio"));
  TRY(read_order(darlin, settings));
  settings.tail = TRY(tail_of(darlin.tail_feature_freq(), darlin.countmin_k(), "darlin"));
  settings.tail_cells_per_key = TRY(above_zero(darlin.countmin_n_ratio(), "darlin.countmin_n_ratio"));
  settings.iterations = TRY(at_least(darlin.max_pass_of_data(), 1, "darlin.max_pass_of_data"));
  settings.epsilon = darlin.epsilon();
  if (!(settings.epsilon >= 0)) return invalid("darlin.epsilon is {}, must be 0 or more", settings.epsilon);
  settings.filters = TRY(filters_of(darlin.comm_filter(), "darlin.comm_filter"));
  return settings;
}

}  // namespace pscloud

#include "learn/online_settings.h"

#include <cmath>
#include <limits>

#include "learn/config.pb.h"
#include "learn/data_settings.h"
#include "learn/shared_settings.h"

namespace pscloud {
namespace {

using PS::LM::Config;
using PS::LM::FilterConfig;
using PS::LM::LearningRateConfig;
using PS::LM::SGDConfig;

constexpr const char* kWeights = "weights";

Result<UpdaterSpec> updater_of(const Config& config) {
  const Penalty penalty = TRY(penalty_of(config));
  if (!config.has_learning_rate()) {
    return invalid("learning_rate is missing; for a start: learning_rate {{ type: DECAY alpha: 0.1 beta: 1 }}");
  }
  const LearningRateConfig& rate = config.learning_rate();
  if (!(rate.alpha() > 0) || std::isinf(rate.alpha())) {
    return invalid("learning_rate.alpha is {}, must be above 0", rate.alpha());
  }
  if (!(rate.beta() >= 0) || std::isinf(rate.beta())) {
    return invalid("learning_rate.beta is {}, must be 0 or more", rate.beta());
  }
  const auto alpha = static_cast<float>(rate.alpha());
  const auto beta = static_cast<float>(rate.beta());
  const bool decays = rate.type() == LearningRateConfig::DECAY;
  const bool adapts = config.async_sgd().ada_grad();
  UpdaterSpec updater;
  if (config.async_sgd().algo() == SGDConfig::FTRL) {
    updater = decays ? UpdaterSpec{"ftrl", {{"alpha", alpha}, {"beta", beta}}}
                     : UpdaterSpec{"ftrl", {{"alpha", alpha}, {"beta", 1}, {"decay", 0}}};
  } else if (!decays) {
    updater = {"sgd", {{"learning_rate", alpha}}};  // a constant rate is nothing to adapt
  } else if (adapts) {
    constexpr float kLeast = 1e-8f;  // or the first gradient, if it is 0, would be divided by 0
    updater = {"adagrad", {{"learning_rate", alpha}, {"epsilon", std::max(beta, kLeast)}}};
  } else {
    return invalid(
        "learning_rate.type DECAY falls with each weight's gradients: it needs async_sgd.ada_grad, or CONSTANT");
  }
  updater.numbers.emplace_back("lambda1", static_cast<float>(penalty.lambda1));
  updater.numbers.emplace_back("lambda2", static_cast<float>(penalty.lambda2));
  return updater;
}

Result<TableSpec> table_of(const Config& config) {
  TableSpec table{.name = kWeights, .updater = TRY(updater_of(config))};
  table.push_filters = TRY(filters_of(config.async_sgd().push_filter(), "async_sgd.push_filter"));
  table.pull_filters = TRY(filters_of(config.async_sgd().pull_filter(), "async_sgd.pull_filter"));
  if (table.push_filters.empty() && table.pull_filters.empty()) {
    // The keys of a push are those of the pull before it: they need neither travel nor be looked up again.
    table.push_filters.push_back({.kind = FilterKind::kKeyCaching, .once = true});
  }
  TRY(validate(table));
  return table;
}

}  // namespace

Result<OnlineSettings> online_settings(const Config& config) {
  if (!config.has_async_sgd()) return invalid("async_sgd is missing: there is nothing to train online");
  const SGDConfig& sgd = config.async_sgd();
  if (!config.has_training_data()) return invalid("training_data is missing");

  OnlineSettings settings;
  settings.files.assign(config.training_data().file().begin(), config.training_data().file().end());
  settings.selection = TRY(data_selection(config.training_data(), "training_data"));
  settings.format = TRY(example_format(config.training_data(), "training_data"));
  settings.validation = TRY(validation_of(config));
  settings.model = TRY(model_output_of(config));
  if (config.has_model_input()) settings.initial_model = TRY(model_input(config.model_input()));
  settings.checkpoint = TRY(checkpoint_settings(config));
  settings.loss = TRY(loss_of(config));
  settings.table = TRY(table_of(config));
  settings.tail = TRY(tail_of(sgd.tail_feature_freq(), sgd.countmin_k(), "async_sgd"));
  if (!(sgd.countmin_n() >= 1)) return invalid("async_sgd.countmin_n is {}, must be 1 or more", sgd.countmin_n());
  settings.tail_cells = static_cast<uint64_t>(std::min(double{sgd.countmin_n()}, 1e12));
  if (config.has_factorization_machine()) settings.embeddings = TRY(embedding_settings(config, settings.table));
  settings.minibatch = TRY(at_least(sgd.minibatch(), 1, "async_sgd.minibatch"));
  settings.passes = TRY(at_least(sgd.num_data_pass(), 1, "async_sgd.num_data_pass"));
  if (sgd.has_local_cache()) settings.cache_prefix = TRY(cache_prefix_of(sgd.local_cache(), "async_sgd.local_cache"));
  settings.cache_passes = sgd.cache_passes();
  settings.ahead_bytes_max = TRY(megabytes_of(sgd.data_buf(), "async_sgd.data_buf"));
  settings.max_delay = TRY(at_least(sgd.max_delay(), 0, "async_sgd.max_delay"));
  settings.synchronous = sgd.synchronous();
  settings.report_seconds = TRY(at_least(sgd.report_interval(), 1, "async_sgd.report_interval"));
  return settings;
}

}  // namespace pscloud

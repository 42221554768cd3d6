#include "learn/online_settings.h"

#include <cmath>
#include <limits>

#include "learn/config.pb.h"
#include "learn/data_settings.h"

namespace pscloud {
namespace {

using PS::LM::Config;
using PS::LM::DataConfig;
using PS::LM::FilterConfig;
using PS::LM::LearningRateConfig;
using PS::LM::LossConfig;
using PS::LM::PenaltyConfig;
using PS::LM::SGDConfig;

constexpr const char* kWeights = "weights";

struct Penalty {
  float lambda1 = 0;
  float lambda2 = 0;
};

Result<uint32_t> at_least(int32_t value, int32_t least, const char* field) {
  if (value < least) return invalid("{} is {}, must be {} or more", field, value, least);
  return static_cast<uint32_t>(value);
}

Result<Loss> loss_of(const Config& config) {
  if (!config.has_loss()) return invalid("loss is missing; for clicks: loss {{ type: LOGIT }}");
  switch (config.loss().type()) {
    case LossConfig::SQUARE: return Loss::kSquare;
    case LossConfig::LOGIT: return Loss::kLogit;
    case LossConfig::HINGE: return Loss::kHinge;
    case LossConfig::SQUARE_HINGE: return Loss::kSquareHinge;
  }
  return invalid("loss.type is {}", static_cast<int>(config.loss().type()));
}

Result<Penalty> penalty_of(const Config& config) {
  if (!config.has_penalty()) return Penalty{};
  const PenaltyConfig& penalty = config.penalty();
  const int most = penalty.type() == PenaltyConfig::L1 ? 2 : 1;
  if (penalty.lambda_size() == 0 || penalty.lambda_size() > most) {
    return invalid("penalty {} has {} lambdas, must have {}", PenaltyConfig::Type_Name(penalty.type()),
                   penalty.lambda_size(), most == 2 ? "1 or 2" : "1");
  }
  for (const double lambda : penalty.lambda()) {
    if (!(lambda >= 0) || std::isinf(lambda)) return invalid("penalty.lambda is {}, must be 0 or more", lambda);
  }
  const auto lambda = [&](int i) { return i < penalty.lambda_size() ? static_cast<float>(penalty.lambda(i)) : 0.0f; };
  if (penalty.type() == PenaltyConfig::L2) return Penalty{0, lambda(0)};
  return Penalty{lambda(0), lambda(1)};
}

Result<UpdaterSpec> updater_of(const Config& config) {
  const Penalty penalty = TRY(penalty_of(config));
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
  updater.numbers.emplace_back("lambda1", penalty.lambda1);
  updater.numbers.emplace_back("lambda2", penalty.lambda2);
  return updater;
}

Result<FilterSpec> filter_of(const FilterConfig& filter, const char* field) {
  switch (filter.type()) {
    case FilterConfig::KEY_CACHING:
      return FilterSpec{.kind = FilterKind::kKeyCaching, .once = filter.clear_cache_if_done()};
    case FilterConfig::COMPRESSING: return FilterSpec{FilterKind::kLz4};
    case FilterConfig::FIXING_FLOAT:
      if (filter.fixed_point_size() > 0) {
        return invalid("{}.fixed_point: the range is always that of the values; leave it out", field);
      }
      if (filter.num_bytes() < 1 || filter.num_bytes() > 3) {
        return invalid("{}.num_bytes is {}, must be 1, 2 or 3", field, filter.num_bytes());
      }
      return FilterSpec{.kind = FilterKind::kFixedPoint, .num_bytes = static_cast<uint8_t>(filter.num_bytes())};
    case FilterConfig::NOISE:
      return FilterSpec{.kind = FilterKind::kNoise, .mean = filter.mean(), .stddev = filter.std()};
  }
  return invalid("{}.type is {}", field, static_cast<int>(filter.type()));
}

Result<TableSpec> table_of(const Config& config) {
  TableSpec table{.name = kWeights, .updater = TRY(updater_of(config))};
  for (const FilterConfig& filter : config.async_sgd().push_filter()) {
    table.push_filters.push_back(TRY(filter_of(filter, "async_sgd.push_filter")));
  }
  for (const FilterConfig& filter : config.async_sgd().pull_filter()) {
    table.pull_filters.push_back(TRY(filter_of(filter, "async_sgd.pull_filter")));
  }
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
  TRY(check_data(config.training_data(), "training_data"));
  if (sgd.tail_feature_freq() != 0) return invalid("async_sgd.tail_feature_freq is not supported yet");
  if (config.has_model_input()) return invalid("model_input while training is not supported yet");

  OnlineSettings settings;
  settings.files.assign(config.training_data().file().begin(), config.training_data().file().end());
  settings.format = TRY(text_format(config.training_data(), "training_data"));
  if (config.has_validation_data()) {
    const DataConfig& validation = config.validation_data();
    TRY(check_data(validation, "validation_data"));
    settings.validation_files.assign(validation.file().begin(), validation.file().end());
    settings.validation_format = TRY(text_format(validation, "validation_data"));
  }
  if (config.has_model_output()) {
    if (config.model_output().format() != DataConfig::TEXT || config.model_output().file_size() != 1) {
      return invalid("model_output must have format: TEXT and one file, the beginning of the names");
    }
    settings.model_prefix = config.model_output().file(0);
  }
  settings.loss = TRY(loss_of(config));
  settings.table = TRY(table_of(config));
  settings.minibatch = TRY(at_least(sgd.minibatch(), 1, "async_sgd.minibatch"));
  settings.passes = TRY(at_least(sgd.num_data_pass(), 1, "async_sgd.num_data_pass"));
  settings.max_delay = TRY(at_least(sgd.max_delay(), 0, "async_sgd.max_delay"));
  settings.report_seconds = TRY(at_least(sgd.report_interval(), 1, "async_sgd.report_interval"));
  return settings;
}

}  // namespace pscloud

#include "learn/shared_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "learn/config.pb.h"
#include "learn/data_settings.h"

namespace pscloud {

using PS::LM::Config;
using PS::LM::FilterConfig;
using PS::LM::LossConfig;
using PS::LM::PenaltyConfig;

namespace {

Result<FilterSpec> filter_of(const FilterConfig& filter, const std::string& field) {
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

}  // namespace

Result<uint32_t> at_least(int32_t value, int32_t least, const char* field) {
  if (value < least) return invalid("{} is {}, must be {} or more", field, value, least);
  return static_cast<uint32_t>(value);
}

Result<uint64_t> megabytes_of(int32_t value, const char* field) {
  return uint64_t{TRY(at_least(value, 1, field))} * 1'000'000;
}

std::string one_of(const char* field, int index, int count) {
  return count == 1 ? field : fmt::format("{}[{}]", field, index);
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
  for (int i = 0; i < penalty.lambda_size(); ++i) {
    if (penalty.lambda(i) >= 0 && !std::isinf(penalty.lambda(i))) continue;
    return invalid("{} is {}, must be 0 or more", one_of("penalty.lambda", i, penalty.lambda_size()),
                   penalty.lambda(i));
  }
  const auto lambda = [&](int i) { return i < penalty.lambda_size() ? penalty.lambda(i) : 0.0; };
  if (penalty.type() == PenaltyConfig::L2) return Penalty{0, lambda(0)};
  return Penalty{lambda(0), lambda(1)};
}

Result<std::vector<FilterSpec>> filters_of(const google::protobuf::RepeatedPtrField<FilterConfig>& filters,
                                           const char* field) {
  std::vector<FilterSpec> specs;
  for (int i = 0; i < filters.size(); ++i) {
    specs.push_back(TRY(filter_of(filters[i], one_of(field, i, filters.size()))));
  }
  return specs;
}

Result<TailSettings> tail_of(int32_t frequency, int32_t hashes, const char* field) {
  if (frequency < 0 || frequency > static_cast<int32_t>(TailFilter::kFrequencyMax)) {
    return invalid("{}.tail_feature_freq is {}, must be 0 to {}", field, frequency, TailFilter::kFrequencyMax);
  }
  // As the original: whatever is asked for, there is one hash at least, and thirty at most.
  return TailSettings{static_cast<uint32_t>(frequency), static_cast<uint32_t>(std::clamp(hashes, 1, 30))};
}

Result<std::optional<ModelOutput>> model_output_of(const Config& config) {
  if (!config.has_model_output()) return std::optional<ModelOutput>();
  return std::optional(TRY(model_output(config.model_output())));
}

Result<ValidationSettings> validation_of(const Config& config) {
  ValidationSettings settings;
  if (config.has_validation_data()) {
    const PS::LM::DataConfig& data = config.validation_data();
    settings.selection = TRY(data_selection(data, "validation_data"));
    settings.files.assign(data.file().begin(), data.file().end());
    settings.format = TRY(example_format(data, "validation_data"));
  }
  if (config.has_early_stop()) {
    if (!config.has_validation_data()) return invalid("early_stop needs validation_data to be tried on");
    settings.early_stop.patience = TRY(at_least(config.early_stop().patience(), 1, "early_stop.patience"));
    settings.early_stop.min_decrease = config.early_stop().min_decrease();
    if (!(settings.early_stop.min_decrease >= 0 && settings.early_stop.min_decrease < 1)) {
      return invalid("early_stop.min_decrease is {}, must be 0 or more and below 1", settings.early_stop.min_decrease);
    }
  }
  return settings;
}

}  // namespace pscloud

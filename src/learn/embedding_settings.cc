#include "learn/embedding_settings.h"

#include <algorithm>
#include <cmath>

#include "learn/config.pb.h"

namespace pscloud {
namespace {

constexpr int32_t kDimMax = 65536;          // as wide as tables can be
constexpr int32_t kThresholdMax = 1 << 24;  // to here floats count one by one

Result<float> number_within(double value, bool zero_too, double below, const char* field) {
  const auto number = static_cast<float>(value);
  if ((zero_too ? value >= 0 : number > 0) && value < below && std::isfinite(number)) return number;
  const char* least = zero_too ? "0 or more" : "above 0";
  if (std::isinf(below)) return invalid("factorization_machine.{} is {}, must be {}", field, value, least);
  return invalid("factorization_machine.{} is {}, must be {} and below {}", field, value, least, below);
}

}  // namespace

Result<EmbeddingSettings> embedding_settings(const PS::LM::Config& config, const TableSpec& weights) {
  const PS::LM::FactorizationMachineConfig& machine = config.factorization_machine();
  if (machine.dim() < 1 || machine.dim() > kDimMax) {
    return invalid("factorization_machine.dim is {}, must be 1 to {}", machine.dim(), kDimMax);
  }
  if (machine.threshold() < 0 || machine.threshold() >= kThresholdMax) {
    return invalid("factorization_machine.threshold is {}, must be 0 or more and below {}", machine.threshold(),
                   kThresholdMax);
  }
  const auto positive = [](double value, const char* field) { return number_within(value, false, INFINITY, field); };
  const auto zero_or_more = [](double value, const char* field) { return number_within(value, true, INFINITY, field); };
  const float alpha = TRY(positive(machine.alpha(), "alpha"));
  const float beta = TRY(zero_or_more(machine.beta(), "beta"));
  const float scale = TRY(positive(machine.init_scale(), "init_scale"));  // from zeros no gradient leads away
  constexpr float kLeastBeta = 1e-8f;  // or a first gradient of 0 would be divided by 0

  EmbeddingSettings settings;
  settings.table = {.name = "embeddings",
                    .width = static_cast<uint32_t>(machine.dim()),
                    .updater = {"adagrad", {{"learning_rate", alpha}, {"epsilon", std::max(beta, kLeastBeta)}}},
                    .initial = {-scale, scale, machine.seed()},
                    .push_filters = weights.push_filters,
                    .pull_filters = weights.pull_filters};
  TRY(validate(settings.table));
  settings.threshold = static_cast<uint32_t>(machine.threshold());
  settings.l1_shrink = machine.l1_shrink();
  // A weight that is not zero was seen, and more is not asked for.
  if (settings.threshold > 0 || !settings.l1_shrink) settings.counts = TableSpec{.name = "embedding_counts"};
  settings.lambda2 = TRY(zero_or_more(machine.lambda_l2(), "lambda_l2"));
  settings.grad_clipping = TRY(zero_or_more(machine.grad_clipping(), "grad_clipping"));
  settings.dropout = TRY(number_within(machine.dropout(), true, 1, "dropout"));
  settings.seed = machine.seed();
  return settings;
}

void finish_gradient(const EmbeddingSettings& settings, std::span<const float> embeddings, Random& random,
                     std::span<float> gradient) {
  if (const float most = settings.grad_clipping; most > 0) {
    for (float& number : gradient) number = std::clamp(number, -most, most);
  }
  if (settings.dropout > 0) {
    for (float& number : gradient) number = random.chance(settings.dropout) ? 0.0f : number;
  }
  for (size_t i = 0; i < gradient.size(); ++i) gradient[i] += settings.lambda2 * embeddings[i];
}

}  // namespace pscloud

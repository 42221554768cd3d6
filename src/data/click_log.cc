#include "data/click_log.h"

#include <algorithm>
#include <cmath>

#include "base/hash.h"

namespace pscloud {
namespace {

// With a million keys a fifth of the examples are clicks, and the best possible AUC is 0.83.
constexpr float kBias = -1.3f;
constexpr float kCategorySpread = 0.3f;
constexpr float kCountSpread = 0.1f;

// About normal. The sum of four even draws is nearly that, and cheap: each is uniform in 0..65535.
float normal_of(uint64_t hash) {
  float sum = 0;
  for (int i = 0; i < 4; ++i, hash >>= 16) sum += static_cast<float>(hash & 0xffff);
  constexpr float kMean = 2 * 65535.0f;
  constexpr float kDeviation = 37837.2f;  // 65536 / sqrt(3)
  return (sum - kMean) / kDeviation;
}

// A product of two vectors of n numbers of deviation s has the deviation s^2 * sqrt(n), and those of different pairs
// do not depend on each other.
float spread_of_hidden(const ClickLog::Options& options) {
  const double pairs = options.categories * (options.categories - 1.0) / 2;
  const double products = pairs * options.interactions;
  return products > 0 ? static_cast<float>(std::sqrt(options.interaction_strength / std::sqrt(products))) : 0.0f;
}

}  // namespace

ClickLog::ClickLog(const Options& options)
    : options_(options),
      keys_each_(std::max<uint64_t>(1, options.keys / std::max(1u, options.categories))),
      ranks_(keys_each_, options.zipf),
      model_hash_(mix_key(options.model_seed)),
      hidden_spread_(spread_of_hidden(options)),
      random_(options.seed) {}

// The same for a key in all logs of one model.
float ClickLog::weight(Key key, float spread) const { return normal_of(mix_key(key + model_hash_)) * spread; }

// The sum over all pairs of the products of their hidden vectors, from the sums over single ones.
float ClickLog::interaction(std::span<const Key> categories) {
  sums_.assign(options_.interactions, 0);
  float squares = 0;
  for (const Key key : categories) {
    const uint64_t stream = mix_key(mix_key(key + model_hash_) + model_hash_);
    for (uint32_t i = 0; i < options_.interactions; ++i) {
      const float hidden = normal_of(mix_key(stream + i)) * hidden_spread_;
      sums_[i] += hidden;
      squares += hidden * hidden;
    }
  }
  float squared_sums = 0;
  for (const float sum : sums_) squared_sums += sum * sum;
  return (squared_sums - squares) / 2;
}

float ClickLog::next(RowBlock& block) {
  float score = kBias;
  const auto add = [&](Key key, float value, uint32_t feature, float spread) {
    block.keys.push_back(key);
    block.values.push_back(value);
    block.groups.push_back(static_cast<uint16_t>(feature + 1));
    score += value * weight(key, spread);
  };
  for (uint32_t i = 0; i < options_.counts; ++i) {
    // The logarithm of a count, in hundredths: texts have no more.
    const double count = std::floor(std::exp(random_.normal(1, 1)));
    add(i + 1, static_cast<float>(std::round(std::log1p(count) * 100) / 100), i, kCountSpread);
  }
  for (uint32_t i = 0; i < options_.categories; ++i) {
    const Key key = 1 + options_.counts + i * keys_each_ + ranks_.draw(random_);
    add(key, 1, options_.counts + i, kCategorySpread);
  }
  if (options_.interactions > 0) score += interaction(std::span(block.keys).last(options_.categories));
  const double chance = 1 / (1 + std::exp(-static_cast<double>(score)));
  block.end_row(random_.chance(chance) ? 1 : 0);
  return score;
}

}  // namespace pscloud

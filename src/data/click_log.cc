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

}  // namespace

ClickLog::ClickLog(const Options& options)
    : options_(options),
      keys_each_(std::max<uint64_t>(1, options.keys / std::max(1u, options.categories))),
      ranks_(keys_each_, options.zipf),
      model_hash_(mix_key(options.model_seed)),
      random_(options.seed) {}

// The same for a key in all logs of one model.
float ClickLog::weight(Key key, float spread) const {
  // The sum of four even draws is nearly normal, and cheap: each is uniform in 0..65535.
  uint64_t hash = mix_key(key + model_hash_);
  float sum = 0;
  for (int i = 0; i < 4; ++i, hash >>= 16) sum += static_cast<float>(hash & 0xffff);
  constexpr float kMean = 2 * 65535.0f;
  constexpr float kDeviation = 37837.2f;  // 65536 / sqrt(3)
  return (sum - kMean) / kDeviation * spread;
}

float ClickLog::next(RowBlock& block) {
  float score = kBias;
  const auto add = [&](Key key, float value, uint32_t group, float spread) {
    block.keys.push_back(key);
    block.values.push_back(value);
    block.groups.push_back(static_cast<uint16_t>(group));
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
  const double chance = 1 / (1 + std::exp(-static_cast<double>(score)));
  block.end_row(random_.chance(chance) ? 1 : 0);
  return score;
}

}  // namespace pscloud

#include "cli/key_batches.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/hash.h"

namespace pscloud {

ZipfRanks::ZipfRanks(uint64_t count, double s) : s_(s), count_(static_cast<double>(count)) {
  CHECK(count > 0 && s >= 0);
  low_ = integral(1.5) - 1;
  high_ = integral(count_ + 0.5);
}

double ZipfRanks::integral(double x) const {
  const double log_x = std::log(x);
  const double t = (1 - s_) * log_x;
  return std::abs(t) > 1e-8 ? log_x * std::expm1(t) / t : log_x * (1 + t / 2);
}

double ZipfRanks::inverse_integral(double y) const {
  const double t = std::max(-1.0, y * (1 - s_));
  return std::exp(std::abs(t) > 1e-8 ? y * std::log1p(t) / t : y * (1 - t / 2));
}

uint64_t ZipfRanks::draw(Random& random) const {
  while (true) {
    const double y = high_ + random.uniform() * (low_ - high_);
    const double x = inverse_integral(y);
    const double k = std::clamp(std::round(x), 1.0, count_);
    // Accepted with the share of the column of k that lies under its probability.
    if (y >= integral(k + 0.5) - std::exp(-s_ * std::log(k))) return static_cast<uint64_t>(k) - 1;
  }
}

KeyBatches::KeyBatches(uint64_t keys, size_t batch, double zipf_s, uint64_t seed)
    : keys_(keys), batch_(batch), random_(seed), taken_(keys) {
  CHECK(batch <= keys);
  if (zipf_s > 0) zipf_ = std::make_unique<ZipfRanks>(keys, zipf_s);
}

Key KeyBatches::draw() {
  if (!zipf_) return random_.below(keys_);
  // Hot keys that lie side by side would share cache lines, which real ones do not.
  return mix_key(zipf_->draw(random_)) % keys_;
}

std::vector<Key> KeyBatches::next() {
  // Enough to find every key of a uniform draw, n ln n; hot keys may leave others without a chance.
  constexpr size_t kDrawsMax = 50;
  std::vector<Key> batch;
  batch.reserve(batch_);
  for (size_t draws = 0; batch.size() < batch_ && draws < batch_ * kDrawsMax; ++draws) {
    const Key key = draw();
    if (taken_[key]) continue;
    taken_[key] = true;
    batch.push_back(key);
  }
  for (const Key key : batch) taken_[key] = false;
  std::ranges::sort(batch);
  return batch;
}

}  // namespace pscloud

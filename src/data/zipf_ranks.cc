#include "data/zipf_ranks.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

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

}  // namespace pscloud

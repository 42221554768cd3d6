#include "cli/bench/quantiles.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace pscloud {
namespace {

double of_sorted(const std::vector<double>& values, double q) {
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  const auto rank = static_cast<size_t>(std::ceil(q * static_cast<double>(values.size())));
  return values[std::clamp<size_t>(rank, 1, values.size()) - 1];
}

}  // namespace

double quantile(std::vector<double> values, double q) {
  std::ranges::sort(values);
  return of_sorted(values, q);
}

Quantiles::Quantiles(std::vector<double> values) {
  std::ranges::sort(values);
  p50 = of_sorted(values, 0.5);
  p95 = of_sorted(values, 0.95);
  p99 = of_sorted(values, 0.99);
  min = of_sorted(values, 0);
}

}  // namespace pscloud

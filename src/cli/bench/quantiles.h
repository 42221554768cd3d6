#pragma once

#include <vector>

namespace pscloud {

// Of measurements: the smallest that is not below a share `q` of them (nearest rank). NaN, which JSON shows as null,
// if there are none.
double quantile(std::vector<double> values, double q);

// Those that reports show.
struct Quantiles {
  explicit Quantiles(std::vector<double> values);

  double p50, p95, p99, min;
};

}  // namespace pscloud

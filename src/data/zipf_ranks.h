#pragma once

#include <cstdint>

#include "base/random.h"

namespace pscloud {

// Draws ranks 0..count-1, where rank r comes with probability in proportion to (r + 1)^-s: word and feature counts are
// like that. s = 0 gives each the same chance. No tables: rejection-inversion (Hormann and Derflinger 1996).
class ZipfRanks {
 public:
  ZipfRanks(uint64_t count, double s);
  uint64_t draw(Random& random) const;

 private:
  double integral(double x) const;  // of the density that lies above the probabilities
  double inverse_integral(double y) const;

  const double s_;
  const double count_;
  double low_, high_;
};

}  // namespace pscloud

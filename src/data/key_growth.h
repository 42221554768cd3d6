#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "pscloud/types.h"

namespace pscloud {

// Tells from a sample how many different keys all of the data have. The sample's rows are dealt out, so that there are
// samples of an eighth, a quarter, a half and all of it; a law of how often the key of rank r comes, r^-s for so many
// ranks, is fitted to how their different keys grow in number. Without an end of ranks that is Heaps' law; with s = 0
// all keys come equally often, and soon no new ones do.
class KeyGrowth {
 public:
  // The keys of a row.
  void add(std::span<const Key> keys);

  uint64_t rows() const { return rows_; }
  uint64_t features() const;

  // Different keys of so many rows, be they more than the sample has or fewer, that come more than `often` times.
  double keys_in(double rows, uint64_t often = 0) const;

 private:
  static constexpr int kDeals = 4;

  uint64_t rows_ = 0;
  std::vector<Key> dealt_[kDeals];  // the sample of an eighth; what a quarter has more; and so on
};

}  // namespace pscloud

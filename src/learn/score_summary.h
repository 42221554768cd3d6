#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "pscloud/work.h"

namespace pscloud {

// How well scores tell examples with a label above 0 from the others: of any number of examples, in 16 MB. Scores are
// counted in buckets as wide as a 2048th of a power of two, within which they count as equal. One thread.
class ScoreSummary {
 public:
  ScoreSummary();

  // Scores that are no numbers count as wrong in every respect.
  void add(std::span<const float> labels, std::span<const float> scores);
  void add(const ScoreSummary& other);

  // As sums in a tally, of which zeros are left out, and back again: `sums` are those from place `first` on.
  static constexpr uint32_t kPlaces = 3 + (2 << 20);
  std::vector<Addend> addends() const;
  void add_sums(uint32_t first, std::span<const double> sums);

  uint64_t examples() const { return examples_; }
  // The chance that one of the first kind has a higher score than one of the others; equal ones count half. 0.5 if
  // there are none of either kind.
  double auc() const;
  // The share of scores with the sign of the label; 0 is that of the others.
  double accuracy() const;
  // The mean of -ln(p), p = 1 / (1 + exp(-score)) being the chance that a score gives to the label; at least 1e-15.
  double logloss() const;

 private:
  struct Bucket {
    uint64_t first_kind = 0;
    uint64_t others = 0;
  };

  std::vector<Bucket> buckets_;  // by score
  uint64_t examples_ = 0;
  uint64_t right_ = 0;
  double loss_ = 0;
};

}  // namespace pscloud

#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/random.h"
#include "data/row_block.h"
#include "data/zipf_ranks.h"

namespace pscloud {

// Makes up a click log: each example has some counts and some categories, as those of advertisements have, and clicks
// come by a logistic model that is known, so that one can tell how good a trained one could be. It is linear or, with
// interactions, a factorization machine: the score has a product of two hidden vectors for each pair of categories.
// Feature i of an example is in group i + 1: 0 is the label's in formats that have groups. Keys increase.
class ClickLog {
 public:
  struct Options {
    uint32_t counts = 13;
    uint32_t categories = 26;
    uint64_t keys = 1000000;            // of all categories together
    double zipf = 1.1;                  // how much more often the common ones come
    uint32_t interactions = 0;          // length of the hidden vectors
    double interaction_strength = 1.5;  // standard deviation of what all pairs add to a score, nearly
    uint64_t model_seed = 1;            // of the weights
    uint64_t seed = 1;                  // of the examples
  };
  explicit ClickLog(const Options& options);

  // Appends an example, its label 0 or 1. Returns its score by the model: the chance of a click is 1 / (1 +
  // exp(-score)).
  float next(RowBlock& block);

 private:
  float weight(Key key, float spread) const;
  float interaction(std::span<const Key> categories);

  const Options options_;
  const uint64_t keys_each_;
  const ZipfRanks ranks_;
  const uint64_t model_hash_;
  const float hidden_spread_;  // of the numbers in hidden vectors
  Random random_;
  std::vector<float> sums_;  // over hidden vectors
};

}  // namespace pscloud

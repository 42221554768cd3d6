#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/random.h"
#include "data/zipf_ranks.h"
#include "pscloud/types.h"

namespace pscloud {

// Makes the key lists of a sparse benchmark: strictly increasing keys below `keys`.
class KeyBatches {
 public:
  // `zipf_s` 0: each key is as likely. Otherwise some are hot, scattered over all keys. `batch` <= `keys`.
  KeyBatches(uint64_t keys, size_t batch, double zipf_s, uint64_t seed);

  // As many as `batch`, or fewer if hot keys leave no chance to find so many different ones.
  std::vector<Key> next();

 private:
  Key draw();

  const uint64_t keys_;
  const size_t batch_;
  Random random_;
  std::unique_ptr<ZipfRanks> zipf_;  // null: uniform
  std::vector<bool> taken_;          // by the batch that is being made
};

}  // namespace pscloud

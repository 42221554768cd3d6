#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "pscloud/types.h"

namespace pscloud {

// How many features the examples have of one group.
struct GroupCount {
  uint64_t features = 0;
  uint64_t examples = 0;  // that have one at least
};

// Which features batch training moves together, and in which order it goes over them. All workers make the same plan.
// The more features of one block an example has, the shorter their steps must be: a group of which examples have
// several features is cut into that many blocks, times `blocks_per_feature`. The original cuts the range of keys into
// equal slices, so that small ids would all be of one block; here a hash of the key decides.
class BlockPlan {
 public:
  BlockPlan(const std::map<uint16_t, GroupCount>& groups, double blocks_per_feature);

  uint32_t blocks() const { return blocks_; }
  uint32_t block_of(uint16_t group, Key key) const;

  // All blocks; in another order in each iteration if `random`.
  std::vector<uint32_t> order(uint32_t iteration, bool random) const;
  // The blocks of these groups, several times, before the first iteration. Groups that there are not are left out.
  std::vector<uint32_t> prior_order(std::span<const uint16_t> groups, uint32_t times, bool random) const;

 private:
  struct Group {
    uint32_t first = 0;
    uint32_t blocks = 0;
  };
  std::map<uint16_t, Group> groups_;
  uint32_t blocks_ = 0;
};

}  // namespace pscloud

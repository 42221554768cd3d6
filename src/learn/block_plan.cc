#include "learn/block_plan.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/check.h"
#include "base/hash.h"
#include "base/random.h"

namespace pscloud {
namespace {

constexpr double kOnePerExample = 1 + 1e-6;
constexpr double kBlocksMax = 1 << 20;
constexpr uint64_t kBlockSalt = 0x5b1f0c6d3a9e8427;  // or the servers, which mix keys too, would each have whole blocks
constexpr uint64_t kPriorSeed = uint64_t{1} << 32;   // of orders that are of no iteration

void shuffle(std::span<uint32_t> order, uint64_t seed) {
  Random random(seed);
  for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
}

}  // namespace

BlockPlan::BlockPlan(const std::map<uint16_t, GroupCount>& groups, double blocks_per_feature) {
  for (const auto& [number, count] : groups) {
    if (count.features == 0) continue;
    const double each =
        static_cast<double>(count.features) / static_cast<double>(std::max<uint64_t>(1, count.examples));
    const double blocks =
        each <= kOnePerExample ? 1 : std::clamp(std::ceil(each * blocks_per_feature), 1.0, kBlocksMax);
    groups_[number] = {blocks_, static_cast<uint32_t>(blocks)};
    blocks_ += static_cast<uint32_t>(blocks);
  }
}

uint32_t BlockPlan::block_of(uint16_t group, Key key) const {
  const auto found = groups_.find(group);
  CHECK(found != groups_.end(), "a feature of group {}, which has none", group);
  const auto scaled = (static_cast<unsigned __int128>(mix_key(key ^ kBlockSalt)) * found->second.blocks) >> 64;
  return found->second.first + static_cast<uint32_t>(scaled);
}

std::vector<uint32_t> BlockPlan::order(uint32_t iteration, bool random) const {
  std::vector<uint32_t> blocks(blocks_);
  std::iota(blocks.begin(), blocks.end(), 0);
  if (random) shuffle(blocks, iteration);
  return blocks;
}

std::vector<uint32_t> BlockPlan::prior_order(std::span<const uint16_t> groups, uint32_t times, bool random) const {
  std::vector<uint32_t> order;
  for (const uint16_t number : groups) {
    const auto found = groups_.find(number);
    if (found == groups_.end()) continue;
    std::vector<uint32_t> blocks(found->second.blocks);
    std::iota(blocks.begin(), blocks.end(), found->second.first);
    for (uint32_t i = 0; i < times; ++i) {
      if (random) shuffle(blocks, kPriorSeed + i);
      order.insert(order.end(), blocks.begin(), blocks.end());
    }
  }
  return order;
}

}  // namespace pscloud

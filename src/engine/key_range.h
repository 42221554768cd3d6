#pragma once

#include <cstdint>
#include <utility>

#include "base/hash.h"
#include "pscloud/types.h"

namespace pscloud {

// Which owner holds a key. The 2^64 mixed keys are cut into 256 shards of equal size; owner i of n holds the shards
// floor(256*i/n) to floor(256*(i+1)/n). Shards, not owners, are the unit that may move one day.
inline constexpr uint32_t kShards = 256;

constexpr uint32_t shard_of(Key key) { return static_cast<uint32_t>(mix_key(key) >> 56); }

constexpr uint32_t owner_of_shard(uint32_t shard, uint32_t owners) {
  // The largest i with floor(256*i/owners) <= shard.
  return static_cast<uint32_t>(((uint64_t{shard} + 1) * owners - 1) / kShards);
}
constexpr uint32_t owner_of(Key key, uint32_t owners) { return owner_of_shard(shard_of(key), owners); }

// Rows [first, last) of a dense table with `rows` rows that owner i of n holds: even, contiguous.
constexpr std::pair<uint64_t, uint64_t> dense_range(uint64_t rows, uint32_t owner, uint32_t owners) {
  const auto cut = [&](uint64_t i) { return static_cast<uint64_t>(static_cast<unsigned __int128>(rows) * i / owners); };
  return {cut(owner), cut(owner + 1)};
}

}  // namespace pscloud

#include "engine/server/hot_keys.h"

#include <algorithm>

#include "base/hash.h"

namespace pscloud {

void HotKeys::add(Key key) {
  ++chosen_;
  // Owners share out the keys by the other end of the hash.
  Set& set = sets_[mix_key(key) % kSets];
  size_t least = 0;
  for (size_t i = 0; i < kWays; ++i) {
    if (set.keys[i] == key && set.counts[i] > 0) {
      ++set.counts[i];
      return;
    }
    if (set.counts[i] < set.counts[least]) least = i;
  }
  set.keys[least] = key;
  set.errors[least] = set.counts[least]++;
}

std::vector<HotKeys::HotKey> HotKeys::top(size_t most) const {
  constexpr uint64_t kLeast = 4;
  const uint64_t least = kLeast * std::max<uint64_t>(1, chosen_ / (kSets * kWays));
  std::vector<HotKey> keys;
  for (const Set& set : sets_) {
    for (size_t i = 0; i < kWays; ++i) {
      const bool certain = set.counts[i] >= least && set.errors[i] <= set.counts[i] / 2;
      if (certain) keys.push_back({set.keys[i], set.counts[i] * kEvery});
    }
  }
  return hottest(std::move(keys), most);
}

std::vector<HotKeys::HotKey> hottest(std::vector<HotKeys::HotKey> keys, size_t most) {
  std::ranges::sort(
      keys, [](const auto& a, const auto& b) { return a.count != b.count ? a.count > b.count : a.key < b.key; });
  if (keys.size() > most) keys.resize(most);
  return keys;
}

}  // namespace pscloud

#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/random.h"
#include "pscloud/types.h"

namespace pscloud {

// Which keys of a table are asked for most: the space-saving counters of Metwally, Agrawal and El Abbadi (2005), fed
// with about one key in kEvery, which chance chooses, so that lists that come again and again do not always show the
// same keys. Each key has eight counters that it may take, by its hash: so a chosen one costs a few nanoseconds however
// many counters there are. Memory is fixed. One thread.
class HotKeys {
 public:
  static constexpr uint64_t kEvery = 256;  // a power of two

  struct HotKey {
    Key key = 0;
    uint64_t count = 0;  // about how often it was asked for
  };

  explicit HotKeys(uint64_t seed) : random_(seed), skip_(gap()) {}

  void take(std::span<const Key> keys) {
    uint64_t at = skip_;
    for (; at < keys.size(); at += gap()) add(keys[at]);
    skip_ = at - keys.size();
  }

  // The hottest first, `most` of them. Only those that were chosen a few times, have a multiple of a counter's share of
  // all, and whose count is certain by half at least: a large flat table has none.
  std::vector<HotKey> top(size_t most) const;

  void add(Key key);  // one that was chosen

 private:
  static constexpr size_t kSets = 1024;
  static constexpr size_t kWays = 8;
  struct Set {
    std::array<Key, kWays> keys{};
    std::array<uint64_t, kWays> counts{};  // 0: free
    std::array<uint64_t, kWays> errors{};  // what the counter may have of keys that had it before
  };

  // From one chosen key to the next: kEvery on average.
  uint64_t gap() { return 1 + (random_.next() & (2 * kEvery - 1)); }

  Random random_;
  uint64_t skip_;
  uint64_t chosen_ = 0;
  std::vector<Set> sets_ = std::vector<Set>(kSets);  // 192 KiB
};

// Of several owners, whose keys are different ones.
std::vector<HotKeys::HotKey> hottest(std::vector<HotKeys::HotKey> keys, size_t most);

}  // namespace pscloud

#include "data/key_counter.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/hash.h"

namespace pscloud {

void KeyCounter::add(Key key) {
  const uint64_t hash = mix_key(key + 0x9e3779b97f4a7c15);
  uint8_t& longest = longest_[hash >> (64 - kBits)];
  const uint64_t rest = hash << kBits | uint64_t{1} << (kBits - 1);  // its end counts as a one
  longest = std::max(longest, static_cast<uint8_t>(std::countl_zero(rest) + 1));
}

uint64_t KeyCounter::count() const {
  const auto places = static_cast<double>(longest_.size());
  double sum = 0;
  double empty = 0;
  for (const uint8_t longest : longest_) {
    sum += std::ldexp(1.0, -longest);
    empty += longest == 0 ? 1 : 0;
  }
  double estimate = 0.7213 / (1 + 1.079 / places) * places * places / sum;
  if (estimate < 2.5 * places && empty > 0) estimate = places * std::log(places / empty);
  return static_cast<uint64_t>(std::llround(estimate));
}

}  // namespace pscloud

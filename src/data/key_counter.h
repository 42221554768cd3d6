#pragma once

#include <array>
#include <cstdint>

#include "pscloud/types.h"

namespace pscloud {

// About how many different keys there were, in 16 KB: HyperLogLog (Flajolet and others 2007), with an error of 0.8%.
class KeyCounter {
 public:
  void add(Key key);
  uint64_t count() const;

 private:
  static constexpr int kBits = 14;
  std::array<uint8_t, 1 << kBits> longest_{};  // run of zeros in hashes that begin with the place, plus 1
};

}  // namespace pscloud

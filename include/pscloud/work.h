#pragma once

#include <cstdint>
#include <string>

namespace pscloud {

// One of the items that workers share out among them.
struct WorkItem {
  uint64_t number = 0;
  std::string text;
  bool repeated = false;  // it was given to another before, which died or is slow: some of it may have been done
  bool pause = false;     // no item, but a pause of that number: nobody has an item now, and nobody gets one
};

// What happens once there is nothing else to do, and a worker that still has an item is much slower than others were.
enum class SlowWork : uint8_t {
  kRepeat = 0,  // the item is given to another too
  kAwait = 1,   // all wait for it: at the end of the work nobody is at it any more
};

// Something to add to one place of a tally.
struct Addend {
  uint32_t place = 0;
  double value = 0;
  bool operator==(const Addend&) const = default;
};

}  // namespace pscloud

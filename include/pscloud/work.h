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

// Who gets an item that nobody has had yet.
enum class WorkDeal : uint8_t {
  kFirstCome =
      0,        // who asks first; but one that a worker has done in another pool is kept for it while there are others
  kByRank = 1,  // in turn the workers that there are when the pool is made: the same in every run. Another gets it
                // only if that one is gone, or has been at one item for very long
};

// Something to add to one place of a tally.
struct Addend {
  uint32_t place = 0;
  double value = 0;
  bool operator==(const Addend&) const = default;
};

}  // namespace pscloud

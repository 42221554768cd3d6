#pragma once

#include <cstdint>
#include <string>

namespace pscloud {

// One of the items that workers share out among them.
struct WorkItem {
  uint64_t number = 0;
  std::string text;
  bool repeated = false;  // it was given to another before, which died or is slow: some of it may have been done
};

// Something to add to one place of a tally.
struct Addend {
  uint32_t place = 0;
  double value = 0;
  bool operator==(const Addend&) const = default;
};

}  // namespace pscloud

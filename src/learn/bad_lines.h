#pragma once

#include <cstddef>

#include "data/example_reader.h"

namespace pscloud {

// Tells a person where the first bad lines are.
class BadLineComplaints {
 public:
  // About those that have come since the last call. If `strict`, the first of them is an error.
  Result<> complain(FileStore& store, const ExampleReader& reader, bool strict);

 private:
  size_t made_ = 0;
};

}  // namespace pscloud

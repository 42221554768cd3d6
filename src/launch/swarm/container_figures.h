#pragma once

#include <chrono>

#include "base/json_value.h"
#include "launch/backend.h"

namespace pscloud {

// What a container uses, of what its engine says of it (GET /containers/ID/stats), by the names of process_sampler.h.
//   cpu_percent     since the last look; 100 is one core; not there at the first
//   memory_bytes    without what the kernel only caches of files
//   sent_bytes, received_bytes   of all its networks; not there if it is in the network of its node
class ContainerFigures {
 public:
  using Time = std::chrono::steady_clock::time_point;

  Figures take(const JsonValue& stats, Time now);

 private:
  double cpu_s_ = -1;  // below 0: not known
  Time at_ = {};
};

}  // namespace pscloud

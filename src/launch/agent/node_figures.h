#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>

#include "base/json_value.h"
#include "base/metrics.h"
#include "launch/backend.h"

namespace pscloud {

// Makes figures of what the nodes of one task say at /status (docs/node-status.md): their "samples" added up (of
// "staleness", "staleness_max" and "heartbeat_age_ms" the largest), and of each of "latency_us" the durations since the
// last time, as push_ms_p50 and push_ms_p99. What is not as it should be is left out. One thread.
class NodeFigures {
 public:
  Figures take(std::span<const JsonValue> statuses);

 private:
  std::map<std::string, std::map<uint64_t, uint64_t>, std::less<>> last_;  // counts by upper bound, by name
};

// One text for all of them: if there are several, "parts", and "waiting_for" and "hot_keys" of all in front.
std::string joined_status(std::span<const std::string> texts, std::span<const JsonValue> statuses);

}  // namespace pscloud

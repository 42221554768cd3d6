#pragma once

#include <algorithm>

#include "base/clock.h"
#include "pscloud/node.h"

namespace pscloud {

// How long a node waits for what. Every wait of the engine ends by one of these.
struct Timing {
  Duration heartbeat = std::chrono::milliseconds(500);
  Duration death = std::chrono::seconds(5);  // silent for so long: dead
  // A worker whose lane closed may come back within this, a server within `death`: its parameters would be lost. More
  // than TCP takes to repeat a lost SYN, which is one second, and than a node needs to notice that nobody answers.
  Duration reconnect = std::chrono::seconds(2);
  Duration retry = std::chrono::seconds(1);  // no answer: ask what became of the request; doubles
  Duration retry_max = std::chrono::seconds(8);
  Duration join = std::chrono::seconds(60);
  Duration orphan = std::chrono::seconds(60);  // a node goes on so long without its scheduler
  Duration stop = std::chrono::seconds(10);
  Duration restart_wait = std::chrono::seconds(5);
  Duration request = std::chrono::seconds(120);
  // While it waits it says for whom: soon, since a newcomer may have begun with this node, then at times.
  Duration complaint_first = std::chrono::seconds(2);
  Duration complaint = std::chrono::seconds(5);

  static Timing of(const NodeOptions& options) {
    using std::chrono::milliseconds;
    Timing timing;
    timing.heartbeat = milliseconds(options.heartbeat_ms);
    timing.death = milliseconds(options.death_timeout_ms);
    timing.reconnect = std::min(std::max(timing.reconnect, timing.heartbeat * 4), timing.death);
    timing.join = milliseconds(options.join_timeout_ms);
    timing.stop = milliseconds(options.stop_timeout_ms);
    timing.restart_wait = milliseconds(options.restart_wait_ms);
    timing.request = milliseconds(options.request_timeout_ms);
    return timing;
  }
};

}  // namespace pscloud

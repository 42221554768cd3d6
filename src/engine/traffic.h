#pragma once

#include <string>

#include "base/metrics.h"

namespace pscloud {

// How many bytes of one table travelled, before its filters and after them. Each end counts both directions.
struct Traffic {
  struct Bytes {
    Counter& plain;  // 8 for a key, 4 for a value
    Counter& wire;   // as payload of frames
    void add(uint64_t plain_bytes, uint64_t wire_bytes) const {
      plain.add(plain_bytes);
      wire.add(wire_bytes);
    }
  };
  Bytes push;  // worker to server
  Bytes pull;  // server to worker

  Traffic(Metrics& metrics, const std::string& table)
      : push(in_direction(metrics, table, "push")), pull(in_direction(metrics, table, "pull")) {}

 private:
  static Bytes in_direction(Metrics& metrics, const std::string& table, const char* direction) {
    const MetricLabels labels = {{"table", table}, {"direction", direction}};
    return {metrics.counter("pscloud_plain_bytes_total", "bytes of keys and values before filters", labels),
            metrics.counter("pscloud_wire_bytes_total", "bytes of the same as they travelled, after filters", labels)};
  }
};

}  // namespace pscloud

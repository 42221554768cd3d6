#pragma once

#include <cstdint>
#include <map>

#include "base/clock.h"
#include "base/metrics.h"
#include "pscloud/types.h"

namespace pscloud {

// How stale the values are that asynchronous pushes are made of: of each push, the pushes of other workers that the
// table has taken since this worker has last pulled. Tells the mean and the largest of about two seconds. What it costs
// is by the request, not by the key. One thread.
class PushStaleness {
 public:
  explicit PushStaleness(Metrics& metrics) : metrics_(metrics) {}

  void on_pull(TableId table, uint64_t session);
  // A worker that has never pulled has nothing that could be stale.
  void on_push(TableId table, uint64_t session, Time now);
  void forget(uint64_t session);

 private:
  void tell();

  struct Table {
    uint64_t pushes = 0;
    std::map<uint64_t, uint64_t> seen;  // by session: those before its last pull, and its own since
  };

  Metrics& metrics_;
  std::map<TableId, Table> tables_;
  Time tell_at_{};
  uint64_t count_ = 0;
  uint64_t sum_ = 0;
  uint64_t largest_ = 0;
  Gauge* told_mean_ = nullptr;  // from the first time on
  Gauge* told_largest_ = nullptr;
};

}  // namespace pscloud

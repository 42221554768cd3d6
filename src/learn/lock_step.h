#pragma once

#include <cstdint>
#include <vector>

#include "pscloud/worker.h"

namespace pscloud {

// Workers that go in step: each ends a clock with every minibatch, and who has none left goes along, clock by clock,
// until nobody has: that is the end of a round. They agree on it by a table of their own, whose pushes take effect when
// a clock ends, so that all of them see the same; one that dies is not waited for. Borrows the worker. One thread.
class LockStep {
 public:
  static constexpr uint32_t kRanksMax = 1024;

  // All workers call this alike, before anything else that has to do with clocks. kUnavailable if they have begun
  // without this one.
  static Result<LockStep> make(Worker& worker);

  // The pushes of a minibatch have been made.
  void end_minibatch();

  struct Wishes {
    bool stays = true;        // in the next round
    bool checkpoint = false;  // after this one
  };
  struct Round {
    std::vector<uint32_t> ranks;  // of the workers that are in the next one, in order
    bool checkpoint = false;      // one of them has wished for it
  };
  // Nothing is left for this worker in this round. Returns when that is so for all, and what they have pushed has taken
  // effect: the same to each.
  Result<Round> end_round(const Wishes& wishes);

 private:
  LockStep(Worker& worker, Table table) : worker_(&worker), table_(std::move(table)) {}

  Worker* worker_;
  Table table_;
  uint32_t rounds_ = 0;
};

}  // namespace pscloud

#include "learn/lock_step.h"

#include <array>

namespace pscloud {
namespace {

// Rows of the table. A row is the sum of what the workers have pushed to it in the last clock in which one has.
enum StepRow : uint32_t {
  kStepBusy,        // workers that had a minibatch
  kStepCheckpoint,  // that wish for one
  kStepRanks        // one for each: the number of the last round after which it has stayed
};
constexpr uint32_t kStepRows = kStepRanks + LockStep::kRanksMax;

}  // namespace

Result<LockStep> LockStep::make(Worker& worker) {
  if (worker.current_clock() > 0) return unavailable("synchronous training has begun without this worker");
  if (worker.rank() >= static_cast<int>(kRanksMax)) {
    return invalid("synchronous training has at most {} workers", kRanksMax);
  }
  return LockStep(worker, TRY(worker.create_table({.name = "steps",
                                                   .kind = TableKind::kDense,
                                                   .rows = kStepRows,
                                                   .updater = {"assign"},
                                                   .consistency = Consistency::sum()})));
}

// Does not wait: the next pull does, for the others to come as far.
void LockStep::end_minibatch() {
  constexpr std::array<float, 1> kBusy = {1};
  (void)worker_->push_rows(table_, kStepBusy, kBusy);
  (void)worker_->clock();
}

Result<LockStep::Round> LockStep::end_round(const Wishes& wishes) {
  ++rounds_;
  const uint32_t mine = kStepRanks + static_cast<uint32_t>(worker_->rank());
  const std::array<Key, 3> keys = {kStepBusy, kStepCheckpoint, mine};
  const std::array<float, 3> values = {0, wishes.checkpoint ? 1.0f : 0.0f,
                                       wishes.stays ? static_cast<float>(rounds_) : 0.0f};
  std::vector<float> told(kStepRows);
  do {
    const Ticket pushed = worker_->push(table_, keys, values);
    const Ticket ended = worker_->clock();
    const auto pulled = worker_->pull_rows(table_, 0, told).wait();
    TRY(pushed.wait());
    TRY(ended.wait());  // at all servers, be there rows of this table or not
    TRY(pulled);
  } while (told[kStepBusy] > 0);
  Round round{.ranks = {}, .checkpoint = told[kStepCheckpoint] > 0};
  for (uint32_t rank = 0; rank < kRanksMax; ++rank) {
    if (told[kStepRanks + rank] == static_cast<float>(rounds_)) round.ranks.push_back(rank);
  }
  return round;
}

}  // namespace pscloud

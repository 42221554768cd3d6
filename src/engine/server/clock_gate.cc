#include "engine/server/clock_gate.h"

#include <algorithm>

#include "base/check.h"

namespace pscloud {

void ClockGate::add(uint64_t session) {
  clocks_.try_emplace(session, minimum_);
  highest_ = std::max(highest_, minimum_);
}

void ClockGate::remove(uint64_t session) {
  const auto found = clocks_.find(session);
  if (found == clocks_.end()) return;
  clocks_.erase(found);
  // With the last one everything anybody did is finished.
  if (clocks_.empty()) minimum_ = highest_ + 1;
  update();
}

void ClockGate::finish(uint64_t session, uint32_t clock) {
  auto found = clocks_.find(session);
  CHECK(found != clocks_.end());
  found->second = std::max(found->second, clock);
  highest_ = std::max(highest_, clock);
  update();
}

uint32_t ClockGate::clock(uint64_t session) const {
  const auto found = clocks_.find(session);
  return found == clocks_.end() ? minimum_ : found->second;
}

void ClockGate::update() {
  if (clocks_.empty()) return;
  uint32_t least = UINT32_MAX;
  for (const auto& [session, clock] : clocks_) least = std::min(least, clock);
  minimum_ = std::max(minimum_, least);
}

uint32_t ClockGate::needed(const Consistency& consistency, uint32_t clock) {
  switch (consistency.kind) {
    case Consistency::Kind::kAsync: return 0;
    case Consistency::Kind::kBsp:
    case Consistency::Kind::kSum: return clock;
    case Consistency::Kind::kSsp: return clock > consistency.staleness ? clock - consistency.staleness : 0;
  }
  return clock;
}

}  // namespace pscloud

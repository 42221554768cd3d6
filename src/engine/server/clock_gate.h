#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "pscloud/table.h"

namespace pscloud {

// The workers' clocks as one owner knows them, and what they let through.
// A worker's clock is the number of clocks it has finished. The minimum never goes back: who comes late starts there.
class ClockGate {
 public:
  // No clock is later, so that there is room for the one after it, and UINT32_MAX can stand for never.
  static constexpr uint32_t kLast = UINT32_MAX - 2;

  // A worker takes part from now on. Ignored if it does already.
  void add(uint64_t session);
  // It takes part no longer: done or dead.
  void remove(uint64_t session);
  bool contains(uint64_t session) const { return clocks_.contains(session); }

  // `session` has finished all clocks below `clock`.
  void finish(uint64_t session, uint32_t clock);
  uint32_t clock(uint64_t session) const;

  // Every clock below this is finished by all. When the last worker has gone: every clock there was.
  uint32_t minimum() const { return minimum_; }

  // What minimum() must reach before a request made at `clock` may be served in a table of that consistency.
  static uint32_t needed(const Consistency& consistency, uint32_t clock);

  // The workers that keep the minimum below `needed`, for people.
  template <class NameOf>
  std::string holding_back(uint32_t needed, NameOf name_of) const {
    std::string names;
    for (const auto& [session, clock] : clocks_) {
      if (clock < needed) names += (names.empty() ? "" : ", ") + name_of(session);
    }
    return names;
  }

 private:
  void update();

  std::map<uint64_t, uint32_t> clocks_;
  uint32_t minimum_ = 0;
  uint32_t highest_ = 0;  // clock anybody has begun
};

}  // namespace pscloud

#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "engine/sabotage.h"

namespace pscloud {

// A whole cluster, the code that ships, in one thread under one seed. The seed decides everything: how many nodes,
// which tables, what the workers do, what breaks and when. docs/simulator.md tells what is checked.
struct SimReport {
  uint64_t seed = 0;
  std::string violation;  // empty: none
  std::string trace;      // the last steps before it
  uint64_t steps = 0;
  double virtual_seconds = 0;
  std::string failed_because;              // empty: the job did not fail; else in a few words
  std::map<std::string, uint64_t> faults;  // by kind
};

SimReport simulate(uint64_t seed, const Sabotage& sabotage = {});

// Many seeds, on `threads` threads; stops at the first violation.
struct SimSummary {
  uint64_t seeds = 0;
  uint64_t violations = 0;
  uint64_t steps = 0;
  double virtual_seconds = 0;
  uint64_t jobs_failed = 0;
  std::map<std::string, uint64_t> failed_because;  // how many of these
  std::map<std::string, uint64_t> faults;
  SimReport first;  // the violation with the lowest seed found
};
SimSummary simulate_seeds(uint64_t first, uint64_t count, int threads, const Sabotage& sabotage = {},
                          const std::function<void(uint64_t done)>& progress = {});

}  // namespace pscloud

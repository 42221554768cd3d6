#include "engine/sim/sim.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "engine/sim/cluster.h"

namespace pscloud {

SimReport simulate(uint64_t seed, const Sabotage& sabotage) { return SimCluster(seed, sabotage).run(); }

SimSummary simulate_seeds(uint64_t first, uint64_t count, int threads, const Sabotage& sabotage,
                          const std::function<void(uint64_t done)>& progress) {
  SimSummary summary;
  Mutex mutex;
  std::atomic<uint64_t> next{0};
  std::atomic<bool> stop{false};
  const auto work = [&] {
    while (!stop) {
      const uint64_t i = next.fetch_add(1);
      if (i >= count) return;
      SimReport report = simulate(first + i, sabotage);
      MutexLock lock(mutex);
      ++summary.seeds;
      summary.steps += report.steps;
      summary.virtual_seconds += report.virtual_seconds;
      if (!report.failed_because.empty()) {
        ++summary.jobs_failed;
        ++summary.failed_because[report.failed_because];
      }
      for (const auto& [kind, times] : report.faults) summary.faults[kind] += times;
      if (!report.violation.empty()) {
        ++summary.violations;
        if (summary.first.violation.empty() || report.seed < summary.first.seed) summary.first = std::move(report);
        stop = true;
      }
      if (progress) progress(summary.seeds);
    }
  };
  std::vector<std::jthread> pool;
  for (int i = 1; i < threads; ++i) pool.emplace_back(work);
  work();
  return summary;
}

}  // namespace pscloud

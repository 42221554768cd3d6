#include <algorithm>
#include <cmath>

#include "engine/sim/cluster.h"

namespace pscloud {

Scenario Scenario::draw(Random& random) {
  using std::chrono::milliseconds;
  Scenario s;
  s.processes = 1 + static_cast<uint32_t>(random.below(3));
  s.owners = 1 + static_cast<uint32_t>(random.below(2));
  s.workers = 1 + static_cast<uint32_t>(random.below(4));
  if (random.chance(0.5)) s.workers_min = 1 + static_cast<uint32_t>(random.below(s.workers));

  // Small enough that windows fill and caches forget.
  s.credit.requests = 2 + static_cast<uint32_t>(random.below(10));
  s.credit.bytes = 600 + static_cast<uint32_t>(random.below(3000));
  s.key_cache_bytes = random.chance(0.5) ? 60 : 4096;
  // Small enough that there are large parts, which others go before; or all are small.
  s.large_bytes = random.chance(0.7) ? 350 + random.below(400) : UINT64_MAX;

  s.calm = random.chance(0.1);
  s.worker_death_fails = random.chance(0.1);
  const auto sometimes = [&](double most) { return !s.calm && random.chance(0.4) ? random.uniform() * most : 0; };
  s.faults.lose = sometimes(0.1);
  s.faults.repeat = sometimes(0.2);
  s.faults.reorder = sometimes(0.2);
  s.faults.slow = sometimes(0.05);
  s.faults.cut = sometimes(0.02);
  s.faults.half_open = 0.3;
  if (!s.calm) {
    s.partitions = random.chance(0.3) ? 1 + static_cast<uint32_t>(random.below(3)) : 0;
    s.pauses = random.chance(0.3) ? 1 + static_cast<uint32_t>(random.below(3)) : 0;
    s.worker_crashes = random.chance(0.3) ? 1 + static_cast<uint32_t>(random.below(3)) : 0;
    s.server_crashes = random.chance(0.05) ? 1 : 0;
    s.scheduler_crashes = random.chance(0.15) ? 1 + static_cast<uint32_t>(random.below(2)) : 0;
  }
  s.incarnations = s.workers + s.worker_crashes;

  s.keys = {0, 1, 2, UINT64_MAX};
  while (random.chance(0.5) && s.keys.size() < 8) s.keys.push_back(random.next());
  const uint32_t tables = 1 + static_cast<uint32_t>(random.below(3));
  for (uint32_t i = 0; i < tables; ++i) {
    TableSpec spec;
    spec.name = "t" + std::to_string(i);
    spec.width = s.incarnations;
    if (random.chance(0.3)) {
      spec.kind = TableKind::kDense;
      spec.rows = s.keys.size();
    }
    switch (random.below(3)) {
      case 0: spec.consistency = Consistency::async(); break;
      case 1: spec.consistency = random.chance(0.5) ? Consistency::bsp() : Consistency::sum(); break;
      default:
        spec.consistency = Consistency::ssp(static_cast<uint32_t>(random.below(random.chance(0.2) ? 8 : 3)));
        break;
    }
    // Only filters that keep small integers exact.
    for (auto* filters : {&spec.push_filters, &spec.pull_filters}) {
      if (random.chance(0.5)) filters->push_back({.kind = FilterKind::kKeyCaching, .once = random.chance(0.5)});
      if (random.chance(0.2)) filters->push_back({FilterKind::kFloat16});
      if (random.chance(0.2)) filters->push_back({FilterKind::kDropZeros});
      if (random.chance(0.1)) filters->push_back({random.chance(0.5) ? FilterKind::kLz4 : FilterKind::kZstd});
    }
    s.tables.push_back(std::move(spec));
  }
  s.script.rounds = 1 + static_cast<uint32_t>(random.below(4));
  s.script.operations = 1 + static_cast<uint32_t>(random.below(6));
  // One who comes late would meet the others at another barrier than it thinks.
  if (s.worker_crashes == 0 && s.workers_min == 0 && random.chance(0.5)) {
    s.script.barrier_every = 1 + static_cast<uint32_t>(random.below(2));
  }
  if (random.chance(0.5)) s.script.work = 1 + static_cast<uint32_t>(random.below(6));
  s.script.sets_rows = s.incarnations == 1 && random.chance(0.5);
  s.script.impatient = random.uniform() * 0.8;
  if (random.chance(0.5)) s.script.think_max = milliseconds(1 + random.below(500));
  // Shorter than most faults: requests are given up.
  if (!s.calm && random.chance(0.3)) {
    s.request_timeout = milliseconds(1000 + random.below(19000));
    s.script.time_outs_max = 3;
  }
  return s;
}

uint64_t Scenario::bytes_held_max() const {
  const uint64_t rows = keys.size() * (sizeof(Key) + incarnations * sizeof(float));
  const uint64_t work = uint64_t{script.work} * 16;  // their offer
  return std::max<uint64_t>(credit.bytes, kFrameHeaderBytes + 256 + std::max(rows, work));
}

std::string Scenario::text() const {
  std::string list;
  for (const TableSpec& table : tables) {
    list += fmt::format(" {}:{}{}", table.name, table.kind == TableKind::kDense ? "dense " : "",
                        table.consistency.kind == Consistency::Kind::kAsync ? "async"
                        : table.consistency.kind == Consistency::Kind::kBsp ? "bsp"
                        : table.consistency.kind == Consistency::Kind::kSum
                            ? "sum"
                            : fmt::format("ssp({})", table.consistency.staleness));
  }
  return fmt::format(
      "{} server processes of {} owners, {} workers (at least {}), tables{}, {} items of work, lose {:.3f} repeat "
      "{:.3f} reorder {:.3f} "
      "slow "
      "{:.3f} cut {:.3f}, {} partitions, {} pauses, crashes of {} workers{}, {} servers, {} schedulers",
      processes, owners, workers, workers_min, list, script.work, faults.lose, faults.repeat, faults.reorder,
      faults.slow, faults.cut, partitions, pauses, worker_crashes, worker_death_fails ? " (one ends the job)" : "",
      server_crashes, scheduler_crashes);
}

}  // namespace pscloud

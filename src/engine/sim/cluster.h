#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/metrics.h"
#include "base/random.h"
#include "engine/scheduler/scheduler.h"
#include "engine/server/shard_owner.h"
#include "engine/sim/oracle.h"
#include "engine/sim/script.h"
#include "engine/sim/sim.h"
#include "engine/worker/worker_core.h"
#include "net/fake.h"

namespace pscloud {

// What a seed makes of a run.
struct Scenario {
  uint32_t processes = 1;  // of servers
  uint32_t owners = 1;     // in each
  uint32_t workers = 1;
  uint32_t workers_min = 0;
  uint32_t incarnations = 1;  // of workers, restarts included
  Duration request_timeout = Timing{}.request;
  Credit credit;
  uint64_t key_cache_bytes = 0;
  uint64_t large_bytes = 0;
  std::vector<TableSpec> tables;
  std::vector<Key> keys;
  Script::Options script;
  NetworkFaults faults;
  bool calm = false;                // nothing breaks: the job must not fail
  bool worker_death_fails = false;  // the policy: the first death of a worker ends the job
  uint32_t partitions = 0, pauses = 0, worker_crashes = 0, server_crashes = 0, scheduler_crashes = 0;

  static Scenario draw(Random& random);
  // What one owner may hold for one worker: its credit, or one request, however large.
  uint64_t bytes_held_max() const;
  std::string text() const;
};

// One simulated job from beginning to end.
class SimCluster {
 public:
  SimCluster(uint64_t seed, const Sabotage& sabotage);

  SimReport run();

 private:
  // Each node has its own network host; `alive` until it is killed.
  struct SchedulerNode {
    std::unique_ptr<LaneHandler> forward;
    std::unique_ptr<Scheduler> core;
    int host = -1;
    bool began = false;  // the job, as far as we have noticed
  };
  struct OwnerNode {
    std::unique_ptr<LaneHandler> forward;
    std::unique_ptr<Random> random;
    std::unique_ptr<ShardOwner> core;
    uint32_t process = 0;
    int host = -1;
    bool alive = true;
    bool judged = false;
    uint32_t minimum = 0;  // seen last: must not go back
  };
  struct WorkerNode {
    std::unique_ptr<LaneHandler> forward;
    std::unique_ptr<Random> random;
    std::unique_ptr<WorkerCore> core;
    std::unique_ptr<Script> script;
    uint64_t session = 0;
    uint32_t column = 0;
    int host = -1;
    bool alive = true;
    Time started{};
    uint32_t clock = 0;  // seen last: must not go back
  };

  void start_at(Time when, std::function<void()> start);
  void start_scheduler();
  void start_owner(uint32_t process, uint32_t owner);
  void start_worker();
  void plan_faults();
  void crash_worker(bool restart);
  void crash_process(uint32_t process);
  void crash_scheduler(bool restart);
  int random_host();
  Time sometime(Duration most);  // short times as likely as long ones

  void check_step();
  void check_deaths();
  bool troubled(int host, Duration wait, uint64_t faults_min) const;
  void check_owner(OwnerNode& owner);
  void check_worker(WorkerNode& worker);
  bool place_must_be_kept(const WorkerNode& worker) const;
  void judge_rows(OwnerNode& owner, bool at_end);
  bool ended() const;
  void check_end();
  std::string why_failed() const;  // empty: it did not
  void violated(const std::string& what);
  std::string trace() const;
  std::string host_name(int host) const;

  const uint64_t seed_;
  const Sabotage sabotage_;
  Random random_;
  Scenario scenario_;
  Oracle oracle_;
  ManualClock clock_;
  FakeNetwork network_;
  Metrics metrics_;
  UpdaterCatalog updaters_;

  std::deque<SchedulerNode> schedulers_;  // the last one lives, if scheduler_alive_
  uint32_t starts_ = 0;                   // planned, not done
  bool scheduler_alive_ = false;
  bool begun_ = false;  // some scheduler has begun the job
  std::deque<OwnerNode> owners_;
  std::deque<WorkerNode> workers_;
  Time last_crash_{};                    // of a worker
  bool crashed_unheard_ = false;         // some worker crashed so that nobody was told
  bool crashed_early_ = false;           // somebody crashed before the job had begun
  std::map<int, Duration> apart_;        // of each host: how long it was paused or parted from some other
  std::set<uint64_t> dead_;              // sessions of nodes that were declared so
  std::vector<uint64_t> processes_;      // ids
  std::deque<FakeNetwork::Step> steps_;  // the last ones
  uint64_t step_count_ = 0;
  Time calm_at_;
  std::string violation_;
};

}  // namespace pscloud

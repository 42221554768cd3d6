#include "engine/sim/cluster.h"

#include <algorithm>
#include <cmath>

namespace pscloud {

using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

constexpr const char* kSchedulerAddress = "scheduler";
constexpr Duration kFaultsFor = seconds(12);
// After the last fault everything must have ended by then: the longest wait of Timing, twice over.
constexpr Duration kLiveness = seconds(300);
constexpr size_t kTraceSteps = 80;
// Faults between a node and the scheduler within the time in which it must be heard, that may make it seem dead: a
// connection that is cut unnoticed, and each attempt to make another. A worker has time for one, a server for two.
constexpr uint64_t kBadLuckOfAWorker = 2;
constexpr uint64_t kBadLuckOfAServer = 3;

// A host needs its handler before the node, which needs its transport, exists.
class Forward final : public LaneHandler {
 public:
  void set(LaneHandler* to) { to_ = to; }
  void on_open(LaneId lane, const Peer& peer) override { to_->on_open(lane, peer); }
  void on_frame(LaneId lane, Frame frame) override { to_->on_frame(lane, std::move(frame)); }
  void on_close(LaneId lane, const Error& why) override { to_->on_close(lane, why); }
  void on_wake() override { to_->on_wake(); }

 private:
  LaneHandler* to_ = nullptr;
};

}  // namespace

SimCluster::SimCluster(uint64_t seed, const Sabotage& sabotage)
    : seed_(seed),
      sabotage_(sabotage),
      random_(seed),
      scenario_(Scenario::draw(random_)),
      oracle_(scenario_.tables, scenario_.keys, scenario_.incarnations),
      network_(random_.next(), clock_),
      calm_at_(clock_.now() + kFaultsFor) {
  network_.set_faults(scenario_.faults);
  for (uint32_t i = 0; i < scenario_.processes; ++i) processes_.push_back(random_.next() | 1);
  const Time start = clock_.now();
  const auto soon = [&] { return random_.chance(0.7) ? start + Duration(random_.below(2000)) : sometime(seconds(3)); };
  start_at(soon(), [this] { start_scheduler(); });
  for (uint32_t process = 0; process < scenario_.processes; ++process) {
    for (uint32_t owner = 0; owner < scenario_.owners; ++owner) {
      start_at(soon(), [this, process, owner, id = processes_[process]] {
        if (processes_[process] == id) start_owner(process, owner);  // else it crashed before
      });
    }
  }
  for (uint32_t i = 0; i < scenario_.workers; ++i) {
    start_at(soon(), [this] { start_worker(); });
  }
  plan_faults();
}

Time SimCluster::sometime(Duration most) {
  const double log_us = random_.uniform() * std::log(static_cast<double>(Duration(most).count()));
  return clock_.now() + Duration(static_cast<int64_t>(std::exp(log_us)));
}

void SimCluster::start_at(Time when, std::function<void()> start) {
  ++starts_;
  network_.at(when, [this, start = std::move(start)] {
    --starts_;
    start();
  });
}

void SimCluster::start_scheduler() {
  SchedulerNode& node = schedulers_.emplace_back();
  auto forward = std::make_unique<Forward>();
  FakeTransport& transport = network_.add_host(*forward);
  node.host = transport.host();
  Scheduler::Options options;
  options.job = "sim";
  options.servers = static_cast<int>(scenario_.processes);
  options.workers = static_cast<int>(scenario_.workers);
  options.workers_min = static_cast<int>(scenario_.workers_min);
  if (scenario_.worker_death_fails) options.worker_death = WorkerDeath::kFail;
  node.core = std::make_unique<Scheduler>(options, transport, clock_);
  forward->set(node.core.get());
  node.forward = std::move(forward);
  (void)transport.listen(kSchedulerAddress);
  scheduler_alive_ = true;
  node.core->start();
}

void SimCluster::start_owner(uint32_t process, uint32_t owner) {
  OwnerNode& node = owners_.emplace_back();
  auto forward = std::make_unique<Forward>();
  FakeTransport& transport = network_.add_host(*forward);
  node.host = transport.host();
  node.process = process;
  node.random = std::make_unique<Random>(random_.next());
  ShardOwner::Options options;
  options.member.job = "sim";
  options.member.scheduler = kSchedulerAddress;
  options.member.self.session = random_.next() | 1;
  options.member.self.process = processes_[process];
  options.member.self.role = Role::kServer;
  options.member.self.rank = Member::kNoRank;
  options.member.self.owner = owner;
  options.member.self.owners = scenario_.owners;
  options.member.self.address = fmt::format("server{}.{}", process, owner);
  options.credit = scenario_.credit;
  options.key_cache_bytes = scenario_.key_cache_bytes;
  options.sabotage = sabotage_;
  (void)transport.listen(options.member.self.address);
  node.core = std::make_unique<ShardOwner>(options, updaters_, transport, clock_, *node.random, metrics_);
  forward->set(node.core.get());
  node.forward = std::move(forward);
  node.core->start();
}

void SimCluster::start_worker() {
  if (workers_.size() >= scenario_.incarnations) return;
  WorkerNode& node = workers_.emplace_back();
  auto forward = std::make_unique<Forward>();
  FakeTransport& transport = network_.add_host(*forward);
  node.host = transport.host();
  node.column = static_cast<uint32_t>(workers_.size() - 1);
  node.started = clock_.now();
  node.session = random_.next() | 1;
  node.random = std::make_unique<Random>(random_.next());
  WorkerCore::Options options;
  options.member.job = "sim";
  options.member.scheduler = kSchedulerAddress;
  options.member.self.session = node.session;
  options.member.self.role = Role::kWorker;
  options.member.self.rank = Member::kNoRank;
  options.member.timing.request = scenario_.request_timeout;
  options.key_cache_bytes = scenario_.key_cache_bytes;
  options.large_bytes = scenario_.large_bytes;
  options.sabotage = sabotage_;
  node.core = std::make_unique<WorkerCore>(options, transport, clock_, *node.random, metrics_);
  forward->set(node.core.get());
  node.forward = std::move(forward);
  Script::Options script = scenario_.script;
  script.column = node.column;
  node.script = std::make_unique<Script>(
      script, *node.core, oracle_, *node.random, [this](const std::string& what) { violated(what); },
      [this](Duration after, std::function<void()> work) { network_.at(clock_.now() + after, std::move(work)); });
  node.script->start();
}

void SimCluster::plan_faults() {
  const Duration most = kFaultsFor - seconds(1);
  for (uint32_t i = 0; i < scenario_.partitions; ++i) {
    network_.at(sometime(most), [this] {
      const int a = random_host();
      const int b = random_host();
      if (a < 0 || a == b || clock_.now() >= calm_at_) return;
      const bool both_ways = random_.chance(0.5);
      network_.count_fault(both_ways ? "partition" : "one-way partition");
      network_.block(a, b);
      if (both_ways) network_.block(b, a);
      const Time until = std::min(sometime(seconds(8)), calm_at_);
      for (const int host : {a, b}) apart_[host] += until - clock_.now();
      network_.at(until, [this, a, b, both_ways] {
        network_.unblock(a, b);
        if (both_ways) network_.unblock(b, a);
      });
    });
  }
  for (uint32_t i = 0; i < scenario_.pauses; ++i) {
    network_.at(sometime(most), [this] {
      const int host = random_host();
      if (host < 0) return;
      const Time until = std::min(sometime(seconds(8)), calm_at_);
      apart_[host] += until - clock_.now();
      network_.pause(host, until);
    });
  }
  for (uint32_t i = 0; i < scenario_.worker_crashes; ++i) {
    network_.at(sometime(most), [this] { crash_worker(random_.chance(0.7)); });
  }
  for (uint32_t i = 0; i < scenario_.server_crashes; ++i) {
    network_.at(sometime(most), [this] { crash_process(static_cast<uint32_t>(random_.below(scenario_.processes))); });
  }
  for (uint32_t i = 0; i < scenario_.scheduler_crashes; ++i) {
    network_.at(sometime(most), [this] { crash_scheduler(random_.chance(0.9)); });
  }
  network_.at(calm_at_, [this] {
    network_.set_faults({});
    network_.heal();
  });
}

int SimCluster::random_host() {
  std::vector<int> hosts;
  if (scheduler_alive_) hosts.push_back(schedulers_.back().host);
  for (const OwnerNode& owner : owners_) {
    if (owner.alive) hosts.push_back(owner.host);
  }
  for (const WorkerNode& worker : workers_) {
    if (worker.alive) hosts.push_back(worker.host);
  }
  return hosts.empty() ? -1 : hosts[random_.below(hosts.size())];
}

void SimCluster::crash_worker(bool restart) {
  std::vector<WorkerNode*> running;
  for (WorkerNode& worker : workers_) {
    if (worker.alive && !worker.script->ended()) running.push_back(&worker);
  }
  if (running.empty()) return;
  WorkerNode& victim = *running[random_.below(running.size())];
  network_.count_fault("worker crash");
  crashed_early_ |= !begun_;
  victim.alive = false;
  victim.script->give_up();
  oracle_.ends(victim.column, Oracle::Life::kLost);
  const bool silent = random_.chance(0.3);
  last_crash_ = clock_.now();
  crashed_unheard_ |= silent;
  network_.kill(victim.host, silent);
  if (restart) start_at(sometime(seconds(3)), [this] { start_worker(); });
}

void SimCluster::crash_process(uint32_t process) {
  network_.count_fault("server crash");
  crashed_early_ |= !begun_;
  const bool silent = random_.chance(0.3);
  for (OwnerNode& owner : owners_) {
    if (owner.process != process || !owner.alive) continue;
    owner.alive = false;
    network_.kill(owner.host, silent);
  }
  processes_[process] = random_.next() | 1;
  if (!random_.chance(0.5)) return;
  // Somebody starts it again, empty: it must not be taken for the one that died.
  const Time when = sometime(seconds(3));
  for (uint32_t owner = 0; owner < scenario_.owners; ++owner) {
    start_at(when, [this, process, owner] { start_owner(process, owner); });
  }
}

void SimCluster::crash_scheduler(bool restart) {
  if (!scheduler_alive_ || schedulers_.back().core->finished()) return;
  network_.count_fault("scheduler crash");
  crashed_early_ |= !begun_;
  scheduler_alive_ = false;
  network_.kill(schedulers_.back().host, random_.chance(0.3));
  if (restart) start_at(sometime(seconds(3)), [this] { start_scheduler(); });
}

SimReport SimCluster::run() {
  while (violation_.empty() && !ended()) {
    if (!network_.step()) {
      violated("nothing is left to happen, but not everybody has ended");
      break;
    }
    ++step_count_;
    steps_.push_back(network_.last_step());
    if (steps_.size() > kTraceSteps) steps_.pop_front();
    check_step();
    if (clock_.now() > calm_at_ + kLiveness) violated("the job has not ended long after the last fault");
  }
  if (violation_.empty()) check_end();
  SimReport report;
  report.seed = seed_;
  report.violation = violation_;
  if (!violation_.empty()) report.trace = trace();
  report.steps = step_count_;
  report.virtual_seconds = static_cast<double>(clock_.now().us) * 1e-6;
  report.failed_because = why_failed();
  report.faults = network_.fault_counts();
  for (const WorkerNode& worker : workers_) {
    if (worker.script->time_outs() > 0) report.faults["request given up"] += worker.script->time_outs();
  }
  return report;
}

void SimCluster::check_step() {
  if (scheduler_alive_) {
    if (schedulers_.back().core->began() && !std::exchange(schedulers_.back().began, true)) {
      if (std::exchange(begun_, true)) oracle_.begins_anew();
    }
    // From the moment the scheduler has decided, owners may act on it.
    for (const NodeInfo& node : schedulers_.back().core->view().nodes) {
      if (node.role != Role::kWorker || node.state == NodeState::kLive) continue;
      for (WorkerNode& worker : workers_) {
        if (worker.session != node.session || oracle_.life(worker.column) != Oracle::Life::kRunning) continue;
        oracle_.ends(worker.column, node.state == NodeState::kDone ? Oracle::Life::kDone : Oracle::Life::kLost);
      }
    }
    check_deaths();
  }
  const int host = network_.last_step().to;
  for (OwnerNode& owner : owners_) {
    if (owner.host == host && owner.alive) check_owner(owner);
  }
  for (WorkerNode& worker : workers_) {
    if (worker.host == host && worker.alive) check_worker(worker);
  }
}

// Who lives and does what it can is not declared dead for one cut or two: it costs its work, or the job.
void SimCluster::check_deaths() {
  for (const NodeInfo& node : schedulers_.back().core->view().nodes) {
    if (node.state != NodeState::kDead || !dead_.insert(node.session).second) continue;
    const bool goes_on = schedulers_.back().core->view().phase == Phase::kRunning;
    if (goes_on && (node.role == Role::kServer || scenario_.worker_death_fails)) {
      violated("the job goes on though it must not without " + node.name());
    }
    const std::string live = "declared dead though it lives: ";
    for (const OwnerNode& owner : owners_) {
      if (owner.core->member().session() != node.session || !owner.alive || owner.core->finished()) continue;
      if (!troubled(owner.host, Timing{}.death, kBadLuckOfAServer)) violated(live + node.name());
    }
    for (const WorkerNode& worker : workers_) {
      if (worker.session != node.session || !worker.alive || worker.script->ended()) continue;
      if (!troubled(worker.host, Timing{}.reconnect, kBadLuckOfAWorker)) violated(live + node.name());
    }
  }
}

// Could it not be heard for so long, whatever it did? It was stopped or parted from others for a good part of that
// time, or the network had so many faults between it and the scheduler that it may have swallowed each attempt. One
// less is enough after the scheduler was started again, and a single one after it stood still: attempts are rare by
// then.
bool SimCluster::troubled(int host, Duration wait, uint64_t faults_min) const {
  const auto apart = [&](int which) {
    const auto found = apart_.find(which);
    return found != apart_.end() && found->second >= wait / 2;
  };
  if (apart(host)) return true;
  const int scheduler = schedulers_.back().host;
  const Time since = clock_.now() - Timing{}.death * 2;  // those before made it wait longer for the next attempt
  const uint64_t enough = apart(scheduler) ? 1 : schedulers_.size() > 1 ? faults_min - 1 : faults_min;
  return network_.faults_between(host, scheduler, since) >= enough;
}

void SimCluster::check_owner(OwnerNode& owner) {
  const ShardOwner& core = *owner.core;
  if (core.gate().minimum() < owner.minimum) violated("the minimum of the clocks went back");
  owner.minimum = core.gate().minimum();
  for (const WorkerNode& worker : workers_) {
    const uint64_t limit = scenario_.bytes_held_max();
    if (core.held_bytes(worker.session) > limit) {
      violated(fmt::format("an owner holds {} bytes for one worker; its limit is {}", core.held_bytes(worker.session),
                           limit));
    }
  }
  judge_rows(owner, false);
  if (core.finished() && !owner.judged) {
    owner.judged = true;
    if (core.outcome()) judge_rows(owner, true);
  }
}

void SimCluster::judge_rows(OwnerNode& owner, bool at_end) {
  std::vector<float> row(scenario_.incarnations);
  for (uint32_t table = 0; table < scenario_.tables.size(); ++table) {
    const OwnedTable* held = owner.core->table(table_id(scenario_.tables[table].name));
    if (held == nullptr || held->rows() == 0) continue;
    for (size_t key = 0; key < scenario_.keys.size(); ++key) {
      const Key name = oracle_.key(table, key);
      if (held->spec().kind == TableKind::kSparse && !owner.core->holds(name)) continue;
      if (!owner.core->peek(table_id(held->spec().name), name, row)) continue;  // another owner's row
      const std::string fault = oracle_.judge_row(table, key, row, at_end);
      if (!fault.empty()) violated(fault);
    }
  }
}

void SimCluster::check_worker(WorkerNode& worker) {
  if (worker.script->error().message.find("places for workers") != std::string::npos && place_must_be_kept(worker)) {
    violated("a worker was refused, though it came for one that had crashed");
  }
  if (worker.core->clock() < worker.clock) violated("the clock of a worker went back");
  worker.clock = worker.core->clock();
  const Member& member = worker.core->member();
  const std::string wait = member.waiting_for();
  if (!worker.script->ended() && (wait.ends_with(": ") || (!member.joined() && wait.empty()))) {
    violated("a worker waits for its place or at a barrier and does not say for whom: '" + wait + "'");
  }
  for (const auto& channel : worker.core->channels()) {
    const uint64_t limit = scenario_.bytes_held_max();
    if (channel->unanswered_bytes() > limit) {
      violated(fmt::format("a worker has {} bytes unanswered; its credit is {}", channel->unanswered_bytes(), limit));
    }
    if (!channel->idle() && channel->waiting_for().empty()) violated("a request waits and does not say for whom");
  }
}

// There are never more workers than places, so one is taken only by one that crashed: from when on must the scheduler
// have seen that it may be dead?
bool SimCluster::place_must_be_kept(const WorkerNode& worker) const {
  // The one that crashed may not have had a lane whose end would have told of it.
  if (scenario_.faults.cut > 0) return false;
  // What it said before comes late, and seems new to a scheduler that was paused.
  if (crashed_unheard_ && scenario_.pauses > 0) return false;
  // One whose goodbye was heard before it crashed is done: nobody can come for it.
  for (const NodeInfo& node : schedulers_.back().core->view().nodes) {
    const bool crashed =
        std::ranges::any_of(workers_, [&](const WorkerNode& one) { return !one.alive && one.session == node.session; });
    if (crashed && node.state == NodeState::kDone) return false;
  }
  const Duration late = scenario_.faults.slow > 0 ? scenario_.faults.slow_max : scenario_.faults.delay_max;
  const Duration unheard = crashed_unheard_ ? Timing{}.heartbeat * 2 : Duration{};
  return worker.started > last_crash_ + late + unheard;
}

bool SimCluster::ended() const {
  if (starts_ > 0) return false;
  if (scheduler_alive_ && !schedulers_.back().core->finished()) return false;
  for (const OwnerNode& owner : owners_) {
    if (owner.alive && !owner.core->finished()) return false;
  }
  for (const WorkerNode& worker : workers_) {
    if (worker.alive && !worker.script->ended()) return false;
  }
  return true;
}

void SimCluster::check_end() {
  const Result<> outcome = schedulers_.back().core->outcome();
  if (!outcome && outcome.error().message.empty()) violated("the job failed without a reason");
  if (!outcome && scenario_.calm) violated("the job failed though nothing broke: " + outcome.error().message);
  // A death has been judged when it was declared. Besides, only one that crashed before the beginning can be missing,
  // or all, if the scheduler crashed when they were about to leave.
  if (why_failed() == "not everybody came" && !crashed_early_ && schedulers_.size() == 1) {
    violated("the job failed though everybody was there: " + outcome.error().message);
  }
  if (why_failed() == "other") violated("the job failed for no reason that is known: " + outcome.error().message);
  for (const WorkerNode& worker : workers_) {
    // One that came after the end is rightly sent away.
    if (scenario_.calm && worker.core->member().joined() && !worker.script->error().message.empty()) {
      violated("a worker failed though nothing broke: " + worker.script->error().message);
    }
  }
}

std::string SimCluster::why_failed() const {
  if (schedulers_.empty()) return "not everybody came";
  const Result<> outcome = schedulers_.back().core->outcome();
  if (outcome) return {};
  const std::string& reason = outcome.error().message;
  if (reason.starts_with("not everybody came")) return "not everybody came";
  if (reason.starts_with("every worker died")) return "every worker died";
  if (reason.starts_with("worker ")) return "a worker died";  // and the policy is to end then
  if (!reason.starts_with("server ")) return "other";
  for (const OwnerNode& owner : owners_) {
    if (!owner.alive && dead_.contains(owner.core->member().session())) return "a server crashed";
  }
  return "a server was not heard";
}

void SimCluster::violated(const std::string& what) {
  if (violation_.empty()) violation_ = what;  // nothing is no violation
}

std::string SimCluster::host_name(int host) const {
  for (const SchedulerNode& node : schedulers_) {
    if (node.host == host) return "scheduler";
  }
  for (const OwnerNode& node : owners_) {
    if (node.host == host)
      return node.core->member().self() ? node.core->member().self()->name() : fmt::format("server host {}", host);
  }
  for (const WorkerNode& node : workers_) {
    if (node.host == host) return fmt::format("worker incarnation {}", node.column);
  }
  return "-";
}

std::string SimCluster::trace() const {
  std::string text = "scenario: " + scenario_.text() + "\n";
  for (const FakeNetwork::Step& step : steps_) {
    text += fmt::format("{:12.6f} {:>22} -> {:<22} {}", static_cast<double>(step.time.us) * 1e-6, host_name(step.from),
                        host_name(step.to), step.what);
    if (step.type != FrameType{}) text += fmt::format(" {} seq {}", frame_type_name(step.type), step.seq);
    text += '\n';
  }
  if (scheduler_alive_) text += "scheduler: " + schedulers_.back().core->status_json() + "\n";
  for (const OwnerNode& owner : owners_) {
    text += fmt::format("{}{}: {}\n", host_name(owner.host), owner.alive ? "" : " (dead)", owner.core->status_json());
  }
  for (const WorkerNode& worker : workers_) {
    text += fmt::format("{}{}: {} {}\n", host_name(worker.host), worker.alive ? "" : " (dead)",
                        worker.core->status_json(), worker.script->error().message);
  }
  return text;
}

}  // namespace pscloud

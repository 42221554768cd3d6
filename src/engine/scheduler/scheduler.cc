#include "engine/scheduler/scheduler.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/log.h"
#include "engine/member.h"

namespace pscloud {

Scheduler::Scheduler(Options options, Transport& transport, Clock& clock)
    : options_(std::move(options)), transport_(transport), clock_(clock) {}

void Scheduler::start() {
  next_tick_ = clock_.now() + options_.timing.heartbeat;
  form_deadline_ = clock_.now() + options_.timing.join;
  next_complaint_ = clock_.now() + options_.timing.complaint_first;
  schedule_wake();
}

void Scheduler::on_open(LaneId lane, const Peer& peer) {
  lanes_.push_back({lane, peer});
  // One with a certificate is no stranger: it may come back with the view of a large job.
  if (peer.role) transport_.trust(lane);
}

void Scheduler::on_close(LaneId lane, const Error&) {
  std::erase_if(lanes_, [&](const Lane& l) { return l.id == lane; });
  for (Entry& entry : entries_) {
    if (entry.lane != lane) continue;
    entry.lane = 0;  // it has time to come back: on_wake watches
    entry.heard = clock_.now();
  }
}

void Scheduler::on_frame(LaneId lane, Frame frame) {
  if (frame.header.type == FrameType::kJoin) {
    on_join(lane, frame);
  } else if (Entry* entry = find(frame.header.session); entry != nullptr && entry->lane == lane) {
    entry->heard = clock_.now();
    if (entry->info.state != NodeState::kLive) {
      if (entry->placed) send_view(*entry);
      return;
    }
    switch (frame.header.type) {
      case FrameType::kHeartbeat: on_heartbeat(*entry, frame); break;
      case FrameType::kBarrier: on_barrier(*entry, frame.header.seq); break;
      case FrameType::kLeave: on_leave(*entry, frame); break;
      default: break;  // nothing a member sends
    }
  }
  check_end();
}

void Scheduler::on_join(LaneId lane, const Frame& frame) {
  auto join = decode<JoinMessage>(frame.bytes());
  if (!join) return refuse(lane, fmt::format("its request to join is not readable: {}", join.error().message));
  const NodeInfo& self = join->self;
  const auto known_lane = std::ranges::find(lanes_, lane, &Lane::id);
  if (known_lane != lanes_.end() && known_lane->peer.role && *known_lane->peer.role != self.role) {
    log_warning("{} at {} has a certificate for a {}: refused", role_name(self.role), known_lane->peer.address,
                role_name(*known_lane->peer.role));
    return refuse(lane, fmt::format("its certificate is for a {}", role_name(*known_lane->peer.role)));
  }
  if (join->job != options_.job) return refuse(lane, fmt::format("this is the job '{}'", options_.job));
  if (self.role == Role::kScheduler || self.session == 0 || frame.header.session != self.session) {
    return refuse(lane, "it is neither server nor worker");
  }

  const bool newer = recovering_ && join->view.version > view_.version;
  if (join->view.version > 0 && (find(self.session) == nullptr || newer) && !learn(join->view)) {
    return refuse(lane, "it belongs to an earlier run of this job, which this scheduler does not know");
  }
  Entry* entry = find(self.session);
  if (entry == nullptr) {
    // It came after the end: the view tells it so.
    if (view_.phase == Phase::kStopping || view_.phase == Phase::kFailed) {
      return send(lane, FrameType::kView, encoded_view_);
    }
    if (self.role == Role::kServer && view_.phase == Phase::kRunning) {
      return refuse(lane, "the job runs already with all its servers");
    }
    const bool twice =
        self.role == Role::kServer && std::ranges::any_of(entries_, [&](const Entry& e) {
          return e.info.role == Role::kServer && e.info.process == self.process && e.info.owner == self.owner;
        });
    if (twice) return refuse(lane, fmt::format("owner {} of that server is here already", self.owner));
    if (self.role == Role::kServer && !fits_its_process(self)) {
      return refuse(lane, fmt::format("owner {} of {} does not fit its server", self.owner, self.owners));
    }
    if (entries_.size() >= kNodesMax) return refuse(lane, "the job is full");
    entries_.push_back({self, false, lane, clock_.now(), 0, {}});
    entry = &entries_.back();
    entry->info.state = NodeState::kLive;  // we decide on the others
  }
  transport_.trust(lane);
  entry->lane = lane;
  entry->heard = clock_.now();
  barriers_ = std::max(barriers_, join->barriers);
  if (entry->placed) return send_view(*entry);
  form();
  place_late_workers();
  if (entry = find(self.session); entry != nullptr && !entry->placed) {
    send(lane, FrameType::kJoinWait, encode(TextMessage{waiting_for()}));
  }
}

// We are new and this node is not: it was in a job whose scheduler died. Take up its view; the others, each with
// its own, will follow, and the newest view wins. Nobody gets a rank or passes a barrier until they are back.
bool Scheduler::learn(const View& view) {
  const bool blank = view_.phase == Phase::kForming;
  if (!blank && !(recovering_ && view.version > view_.version)) return false;
  if (view.phase == Phase::kForming) return false;
  std::vector<Entry> members;
  for (const NodeInfo& node : view.nodes) {
    // It may be here already, even as a new one: it had not heard yet that the old scheduler had given it a place.
    const Entry* here = find(node.session);
    members.push_back({node, true, here ? here->lane : 0, clock_.now(), 0, {}});
  }
  std::erase_if(entries_, [&](const Entry& e) { return e.placed || view.find(e.info.session) != nullptr; });
  while (entries_.size() + members.size() > kNodesMax) {
    refuse(entries_.back().lane, "the job is full");
    entries_.pop_back();
  }
  entries_.insert(entries_.begin(), members.begin(), members.end());
  view_ = view;
  encoded_view_ = encode(view_);
  recovering_ = true;
  recover_until_ = clock_.now() + options_.timing.death;
  log_info("takes up the job from its members, at view {}", view_.version);
  return true;
}

bool Scheduler::fits_its_process(const NodeInfo& self) const {
  return self.process != 0 && self.owner < self.owners && std::ranges::none_of(entries_, [&](const Entry& e) {
           return e.info.role == Role::kServer && e.info.process == self.process && e.info.owners != self.owners;
         });
}

// Server processes of which every owner is here, in order of arrival.
std::vector<uint64_t> Scheduler::whole_servers() const {
  std::vector<uint64_t> order;
  std::map<uint64_t, std::set<uint32_t>> owners;
  for (const Entry& entry : entries_) {
    if (entry.info.role != Role::kServer || entry.info.state != NodeState::kLive || entry.lane == 0) continue;
    auto& present = owners[entry.info.process];
    present.insert(entry.info.owner);
    if (present.size() == entry.info.owners) order.push_back(entry.info.process);
  }
  return order;
}

void Scheduler::form() {
  if (view_.phase != Phase::kForming) return;
  std::vector<uint64_t> processes = whole_servers();
  const auto waiting = static_cast<int>(
      std::ranges::count_if(entries_, [](const Entry& e) { return e.info.role == Role::kWorker && e.lane != 0; }));
  const int needed = options_.workers_min > 0 ? options_.workers_min : options_.workers;
  if (static_cast<int>(processes.size()) < options_.servers || waiting < needed) return;
  processes.resize(options_.servers);

  // Wishes first, then the order of arrival.
  std::vector<uint64_t> by_rank(options_.servers, 0);
  const auto wish_of = [&](uint64_t process) {
    return std::ranges::find_if(entries_, [&](const Entry& e) { return e.info.process == process; })->info.rank;
  };
  for (const bool wishes : {true, false}) {
    for (const uint64_t process : processes) {
      if (std::ranges::find(by_rank, process) != by_rank.end()) continue;
      const uint32_t wish = wish_of(process);
      if (wishes && wish < by_rank.size() && by_rank[wish] == 0) by_rank[wish] = process;
      if (!wishes) *std::ranges::find(by_rank, uint64_t{0}) = process;
    }
  }
  for (Entry& entry : entries_) {
    const auto place = std::ranges::find(by_rank, entry.info.process);
    if (entry.info.role != Role::kServer || place == by_rank.end()) continue;
    entry.placed = true;
    entry.info.rank = static_cast<uint32_t>(place - by_rank.begin());
  }
  view_.phase = Phase::kRunning;
  began_ = true;
  // The view's owners hold key ranges in this order.
  std::ranges::stable_sort(entries_, [](const Entry& a, const Entry& b) {
    const auto order = [](const Entry& e) {
      const bool server = e.info.role == Role::kServer && e.placed;
      return std::tuple(!server, server ? e.info.rank : 0, server ? e.info.owner : 0);
    };
    return order(a) < order(b);
  });
  for (Entry& entry : entries_) {
    if (entry.info.role == Role::kServer && !entry.placed) refuse(entry.lane, "the job has all its servers");
  }
  std::erase_if(entries_, [](const Entry& e) { return e.info.role == Role::kServer && !e.placed; });
  log_info("the job '{}' begins: {} server{}, {} of {} worker{}", options_.job, options_.servers,
           options_.servers == 1 ? "" : "s", std::min(waiting, options_.workers), options_.workers,
           options_.workers == 1 ? "" : "s");
  place_late_workers();
  publish();
}

std::optional<uint32_t> Scheduler::free_rank(uint32_t wish) const {
  std::vector<bool> taken(options_.workers, false);
  for (const Entry& entry : entries_) {
    // The rank of one that died may be taken by the one that replaces it; that of one that is done may not.
    if (entry.placed && entry.info.role == Role::kWorker && entry.info.state != NodeState::kDead &&
        entry.info.rank < taken.size()) {
      taken[entry.info.rank] = true;
    }
  }
  if (wish < taken.size() && !taken[wish]) return wish;
  const auto free = std::ranges::find(taken, false);
  if (free == taken.end()) return std::nullopt;
  return static_cast<uint32_t>(free - taken.begin());
}

void Scheduler::place_late_workers() {
  if (view_.phase != Phase::kRunning || recovering_) return;
  bool changed = false;
  // Those with a wish choose first, so that the others do not sit on their places.
  for (const bool wishes : {true, false}) {
    for (Entry& entry : entries_) {
      if (entry.placed || entry.info.role != Role::kWorker || (entry.info.rank != Member::kNoRank) != wishes) continue;
      if (entry.lane == 0) continue;  // it could not be told, and might not come back
      const auto rank = free_rank(entry.info.rank);
      if (!rank) continue;
      entry.info.rank = *rank;
      entry.placed = true;
      changed = true;
    }
  }
  // One that was killed and started again at once comes before its death is certain: it waits until that is decided.
  if (maybe_dead() == nullptr) {
    for (const Entry& entry : entries_) {
      if (!entry.placed) refuse(entry.lane, fmt::format("all {} places for workers are taken", options_.workers));
    }
    std::erase_if(entries_, [](const Entry& entry) { return !entry.placed; });
  }
  if (changed) all_dead_since_ = Time::never();
  if (changed && view_.version > 0) publish();
}

// A worker whose place may soon be free: it missed more than one heartbeat, or its lane closed.
const Scheduler::Entry* Scheduler::maybe_dead() const {
  const auto found = std::ranges::find_if(entries_, [&](const Entry& e) {
    return e.placed && e.info.role == Role::kWorker && e.info.state == NodeState::kLive &&
           (e.lane == 0 || clock_.now() - e.heard > options_.timing.heartbeat * 2);
  });
  return found == entries_.end() ? nullptr : &*found;
}

void Scheduler::on_heartbeat(Entry& entry, const Frame& frame) {
  auto beat = decode<HeartbeatMessage>(frame.bytes());
  if (!beat) return;
  entry.waiting_for = std::move(beat->waiting_for);
  send(entry.lane, FrameType::kHeartbeatReply, nullptr);
  if (entry.placed && beat->view_version < view_.version) send_view(entry);
}

void Scheduler::on_barrier(Entry& entry, uint64_t number) {
  if (!entry.placed || entry.info.role != Role::kWorker) return;
  entry.barrier = std::max(entry.barrier, number);
  if (number <= barriers_) {
    send(entry.lane, FrameType::kBarrierRelease, nullptr, number);
    return;
  }
  check_barrier();
  if (number > barriers_) send(entry.lane, FrameType::kBarrierWait, encode(TextMessage{barrier_waits_for()}));
}

void Scheduler::check_barrier() {
  if (recovering_ || view_.phase != Phase::kRunning) return;
  barrier_missing_.clear();
  bool anybody = false;
  for (const Entry& entry : entries_) {
    if (!entry.placed || entry.info.role != Role::kWorker || entry.info.state != NodeState::kLive) continue;
    anybody |= entry.barrier > barriers_;
    if (entry.barrier <= barriers_) barrier_missing_ += (barrier_missing_.empty() ? "" : ", ") + entry.info.name();
  }
  if (!anybody || !barrier_missing_.empty()) return;
  ++barriers_;
  for (const Entry& entry : entries_) {
    if (entry.lane != 0 && entry.barrier == barriers_) {
      send(entry.lane, FrameType::kBarrierRelease, nullptr, barriers_);
    }
  }
}

void Scheduler::on_leave(Entry& entry, const Frame& frame) {
  auto goodbye = decode<LeaveMessage>(frame.bytes());
  if (!goodbye) return;
  const uint64_t session = entry.info.session;
  if (!entry.placed) {
    std::erase_if(entries_, [&](const Entry& e) { return e.info.session == session; });
    return;
  }
  // A server that leaves before the workers have ended takes its parameters with it, whatever it says.
  const bool fails = goodbye->failed || entry.info.role == Role::kServer;
  if (fails && view_.phase == Phase::kRunning) {
    bury(entry, goodbye->reason.empty() ? "it failed" : goodbye->reason);
    if (Entry* still = find(session)) send_view(*still);
    return;
  }
  entry.info.state = NodeState::kDone;
  log_debug("{} is done", entry.info.name());
  publish();
  check_barrier();
}

void Scheduler::bury(Entry& entry, const std::string& why) {
  const std::string name = entry.info.name();
  if (!entry.placed) {
    log_info("{} {} went away before it had a rank: {}", role_name(entry.info.role), entry.info.address, why);
    const uint64_t session = entry.info.session;
    std::erase_if(entries_, [&](const Entry& e) { return e.info.session == session; });
    return;
  }
  entry.info.state = NodeState::kDead;
  if (view_.phase == Phase::kRunning) {
    log_warning("{} died: {}", name, why);
    if (entry.info.role == Role::kServer) {
      fail_job(fmt::format("{} died ({}) and its parameters are lost", name, why));
      return;
    }
    if (options_.worker_death == WorkerDeath::kFail) {
      fail_job(fmt::format("{} died ({})", name, why));
      return;
    }
  }
  publish();
  check_barrier();
  place_late_workers();
}

void Scheduler::fail_job(std::string reason) {
  if (view_.phase == Phase::kFailed || view_.phase == Phase::kStopping) return;
  view_.phase = Phase::kFailed;
  view_.reason = std::move(reason);
  log_error("the job '{}' failed: {}", options_.job, view_.reason);
  stop_deadline_ = clock_.now() + options_.timing.stop;
  publish();
  send_away();
  check_end();
}

// The job is over: the view tells it to those who have no place in it.
void Scheduler::send_away() {
  for (const Entry& entry : entries_) {
    if (!entry.placed) send(entry.lane, FrameType::kView, encoded_view_);
  }
  std::erase_if(entries_, [](const Entry& entry) { return !entry.placed; });
}

size_t Scheduler::count(Role role, NodeState state) const {
  return std::ranges::count_if(entries_, [&](const Entry& entry) {
    return entry.placed && entry.info.role == role && entry.info.state == state;
  });
}

void Scheduler::check_end() {
  if (finished_ || recovering_) return;
  const size_t live_workers = count(Role::kWorker, NodeState::kLive);
  if (view_.phase == Phase::kRunning && live_workers == 0) {
    const size_t died = count(Role::kWorker, NodeState::kDead);
    if (count(Role::kWorker, NodeState::kDone) > 0) {
      if (died > 0) log_warning("the job ends though {} worker{} died", died, died == 1 ? "" : "s");
      view_.phase = Phase::kStopping;
      stop_deadline_ = clock_.now() + options_.timing.stop;
      publish();
      send_away();
    } else if (all_dead_since_ == Time::never()) {
      all_dead_since_ = clock_.now();
    } else if (clock_.now() - all_dead_since_ >= options_.timing.restart_wait) {
      fail_job("every worker died and none was started again");
    }
  }
  if (view_.phase != Phase::kStopping && view_.phase != Phase::kFailed) return;
  const size_t live = live_workers + count(Role::kServer, NodeState::kLive);
  if (live > 0 && clock_.now() < stop_deadline_) return;
  if (live > 0) log_warning("ends without the goodbye of {}", waiting_for());
  finished_ = true;
}

void Scheduler::on_wake() {
  const Time now = clock_.now();
  if (now < next_tick_) return schedule_wake();
  // While this process itself stood still (stopped, swapped out, starved) nobody could be heard: that time counts
  // against nobody.
  if (const Duration overslept = now - next_tick_; overslept > options_.timing.heartbeat) {
    for (Entry& entry : entries_) entry.heard = std::min(now, entry.heard + overslept);
    recover_until_ = recover_until_ == Time::never() ? recover_until_ : recover_until_ + overslept;
  }
  next_tick_ = now + options_.timing.heartbeat;

  if (recovering_) {
    const bool all_back = std::ranges::all_of(
        entries_, [](const Entry& e) { return !e.placed || e.info.state != NodeState::kLive || e.lane != 0; });
    if (all_back || now >= recover_until_) {
      recovering_ = false;
      ++view_.version;  // above anything the old scheduler can have said to those who are back
      publish();        // who never came back has been silent for long enough by now; one that was cut just now has not
    }
  }
  if (!recovering_) {
    std::vector<std::pair<uint64_t, std::string>> dead;
    for (const Entry& entry : entries_) {
      if (entry.info.state != NodeState::kLive) continue;
      const Duration silent = now - entry.heard;
      // A server's death costs the job, so it has as long as if it were silent.
      const bool costly = entry.placed && entry.info.role == Role::kServer;
      if (entry.lane == 0 && silent >= (costly ? options_.timing.death : options_.timing.reconnect)) {
        dead.emplace_back(entry.info.session, fmt::format("its connection closed {:.1f} s ago", in_seconds(silent)));
      } else if (silent >= options_.timing.death) {
        dead.emplace_back(entry.info.session, fmt::format("it has been silent for {:.1f} s", in_seconds(silent)));
      }
    }
    for (const auto& [session, why] : dead) {
      if (Entry* entry = find(session); entry != nullptr && entry->info.state == NodeState::kLive) bury(*entry, why);
    }
    form();
    place_late_workers();
  }
  if (view_.phase == Phase::kForming && now >= next_complaint_) {
    log_info("waits for {}", missing_nodes());
    next_complaint_ = now + options_.timing.complaint;
  }
  if (view_.phase == Phase::kForming && now >= form_deadline_) {
    failure_code_ = Code::kTimeout;
    fail_job(fmt::format("not everybody came within {:.0f} s: {} missing", in_seconds(options_.timing.join),
                         missing_nodes()));
  }
  const SharedBuffer missing = encode(TextMessage{waiting_for()});
  for (const Entry& entry : entries_) {
    if (!entry.placed) send(entry.lane, FrameType::kJoinWait, missing);
  }
  check_end();
  schedule_wake();
}

void Scheduler::publish() {
  ++view_.version;
  view_.nodes.clear();
  for (const Entry& entry : entries_) {
    if (entry.placed) view_.nodes.push_back(entry.info);
  }
  encoded_view_ = encode(view_);
  for (Entry& entry : entries_) {
    if (entry.placed && entry.lane != 0) send_view(entry);
  }
}

void Scheduler::send_view(Entry& entry) { send(entry.lane, FrameType::kView, encoded_view_, barriers_); }

void Scheduler::send(LaneId lane, FrameType type, SharedBuffer payload, uint64_t seq) {
  if (lane == 0) return;
  Frame frame;
  frame.header.type = type;
  frame.header.seq = seq;
  frame.payload = std::move(payload);
  transport_.send(lane, std::move(frame));
}

void Scheduler::refuse(LaneId lane, const std::string& why) {
  send(lane, FrameType::kRefused, encode(TextMessage{why}));
  if (lane == 0) return;
  // Or refusals would pile up here for one that asks again and again and does not read.
  transport_.close(lane);
  on_close(lane, invalid("refused"));
}

Scheduler::Entry* Scheduler::find(uint64_t session) {
  const auto found = std::ranges::find_if(entries_, [&](const Entry& e) { return e.info.session == session; });
  return found == entries_.end() ? nullptr : &*found;
}

void Scheduler::schedule_wake() {
  if (!finished_) transport_.wake_at(next_tick_);
}

Result<> Scheduler::outcome() const {
  if (view_.phase == Phase::kFailed) return Error{failure_code_, view_.reason};
  return {};
}

}  // namespace pscloud

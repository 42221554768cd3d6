#include "engine/member.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/log.h"

namespace pscloud {

using std::chrono::milliseconds;

namespace {
constexpr Duration kBackoffFirst = milliseconds(50);
constexpr Duration kBackoffMax = milliseconds(1000);
constexpr uint32_t kUnansweredMax = 2;
}  // namespace

Member::Member(Options options, Transport& transport, Clock& clock, Random& random, Listener& listener)
    : options_(std::move(options)), transport_(transport), clock_(clock), random_(random), listener_(listener) {
  CHECK(options_.self.session != 0);
}

void Member::start() {
  const Time now = clock_.now();
  started_ = heard_ = now;
  join_deadline_ = now + options_.timing.join;
  next_complaint_ = now + options_.timing.complaint_first;
  connect();
}

void Member::connect() {
  next_connect_ = Time::never();
  open_ = false;
  lane_ = transport_.connect(options_.scheduler, Role::kScheduler);
  // If neither on_open nor on_close comes, on_wake gives this attempt up. Who has asked for a place may have one to
  // lose, so it tries again soon, and only then waits longer, as a slow network may need.
  const Timing& timing = options_.timing;
  patience_ = asked_ ? std::clamp(patience_, timing.reconnect / 2, timing.death) : timing.death;
  next_beat_ = clock_.now() + patience_;
}

void Member::send(FrameType type, SharedBuffer payload, uint64_t seq) {
  Frame frame;
  frame.header.type = type;
  frame.header.session = options_.self.session;
  frame.header.seq = seq;
  frame.payload = std::move(payload);
  transport_.send(lane_, std::move(frame));
}

void Member::on_open(LaneId lane) {
  if (lane != lane_) return;
  open_ = true;
  transport_.trust(lane);
  heard_ = clock_.now();
  unanswered_ = 0;
  asked_ = true;
  patience_ = Duration{};
  beat();
}

// The periodic sign of life; says again whatever the scheduler may not have heard.
void Member::beat() {
  next_beat_ = clock_.now() + options_.timing.heartbeat;
  ++unanswered_;
  // A join after the first tells the scheduler which lane is ours now, and a restarted one what it forgot.
  if (!joined() || !introduced_) {
    JoinMessage join;
    join.job = options_.job;
    join.self = self() ? *self() : options_.self;
    join.barriers = barriers_;
    join.view = view_;
    send(FrameType::kJoin, encode(join));
  } else {
    send(FrameType::kHeartbeat, encode(HeartbeatMessage{view_.version, node_waiting_for_}));
  }
  if (leaving_) send(FrameType::kLeave, encode(goodbye_));
  if (at_barrier_) send(FrameType::kBarrier, nullptr, barriers_ + 1);
}

void Member::on_frame(LaneId lane, const Frame& frame) {
  if (lane != lane_ || expelled_) return;
  heard_ = clock_.now();
  unanswered_ = 0;
  // Not in on_open: a scheduler that refuses our certificate closes the lane after it has opened here.
  backoff_ = Duration{};
  connect_error_.clear();
  switch (frame.header.type) {
    case FrameType::kJoinWait: {
      auto text = decode<TextMessage>(frame.bytes());
      if (text) missing_ = text->text;
      introduced_ = true;
      // Who came before the scheduler must not go before it: the others would be told that this one is missing.
      if (!std::exchange(told_to_wait_, true)) {
        join_deadline_ = heard_ + options_.timing.join + options_.timing.reconnect;
      }
      break;
    }
    case FrameType::kView: {
      auto view = decode<View>(frame.bytes());
      if (!view) {
        log_warning("a view from the scheduler is not readable: {}", view.error().message);
        return;
      }
      introduced_ = true;
      take_view(std::move(*view), frame.header.seq);
      break;
    }
    case FrameType::kHeartbeatReply: introduced_ = true; break;
    case FrameType::kBarrierWait: {
      auto text = decode<TextMessage>(frame.bytes());
      if (text && at_barrier_) barrier_missing_ = text->text;
      break;
    }
    case FrameType::kBarrierRelease:
      if (at_barrier_ && frame.header.seq == barriers_ + 1) {
        at_barrier_ = false;
        barrier_missing_.clear();
        listener_.on_barrier(++barriers_);
      }
      break;
    case FrameType::kRefused: {
      auto text = decode<TextMessage>(frame.bytes());
      expel(invalid("the scheduler at {} refuses this {}: {}", options_.scheduler, role_name(options_.self.role),
                    text ? text->text : "it does not say why"));
      break;
    }
    default: break;  // nothing a scheduler sends
  }
}

void Member::take_view(View view, uint64_t barriers) {
  if (view.version <= view_.version) return;
  if (view.find(options_.self.session) == nullptr) {
    // We have no place in it: it ended before we came.
    if (view.phase == Phase::kFailed) expel(unavailable("the job failed: {}", view.reason));
    if (view.phase == Phase::kStopping) expel(unavailable("the job is over"));
    return;
  }
  const bool first = !joined();
  view_ = std::move(view);
  const NodeInfo* me = self();
  if (first) barriers_ = std::max(barriers_, barriers);
  if (leaving_) {
    left_ |= me->state != NodeState::kLive;
    return;
  }
  if (me->state == NodeState::kDead) {
    expel(
        unavailable("the scheduler has declared this {} dead: it was not heard for too long. Start it again to "
                    "join as a new one",
                    me->name()));
    return;
  }
  listener_.on_view(view_);
}

void Member::on_close(LaneId lane, const Error& why) {
  if (lane != lane_) return;
  lane_ = 0;
  open_ = false;
  introduced_ = false;
  connect_error_ = why.message;
  if (leaving_ && view_.phase != Phase::kRunning) left_ = true;  // it is ending as we are
  if (expelled_ || left_) return;
  backoff_ = std::clamp(backoff_ * 2, kBackoffFirst, kBackoffMax);
  // Many nodes lose one scheduler at the same moment: they must not come back at the same moment.
  next_connect_ = clock_.now() + backoff_ / 2 + Duration(static_cast<int64_t>(random_.below(backoff_.count())));
}

// The scheduler answers each beat. If it has heard our lane close and we have not, it will soon say that we are dead.
// Beats are counted beside the time, since one who stood still itself has not read yet what came meanwhile.
bool Member::scheduler_is_silent() const {
  const Duration silent = clock_.now() - heard_;
  return silent > options_.timing.death || (unanswered_ >= kUnansweredMax && silent >= options_.timing.reconnect / 2);
}

void Member::on_wake() {
  const Time now = clock_.now();
  if (expelled_ || left_) return;
  if (leaving_ && now >= leave_deadline_) {
    left_ = true;
    return;
  }
  if (now >= next_connect_) connect();
  if (lane_ != 0 && now >= next_beat_) {
    if (!open_ || scheduler_is_silent()) {
      if (!open_) {
        patience_ *= 2;
      } else {
        backoff_ = Duration{};  // it lets us in: what it said may be late, and it may count the time
      }
      const LaneId silent = lane_;
      transport_.close(silent);
      on_close(silent, timed_out("{} has not answered for {:.1f} s", options_.scheduler, in_seconds(now - heard_)));
    } else {
      beat();
    }
  }
  if (!joined() && now >= join_deadline_) {
    expel(timed_out("no place in the job after {:.0f} s: {}", in_seconds(now - started_), waiting_for()));
    return;
  }
  if (joined() && !open_ && !leaving_ && now - heard_ > options_.timing.orphan) {
    expel(unavailable("the scheduler at {} has been gone for {:.0f} s ({})", options_.scheduler,
                      in_seconds(now - heard_), connect_error_));
    return;
  }
  if (now >= next_complaint_) {
    next_complaint_ = now + options_.timing.complaint;
    if (const std::string waiting = waiting_for(); !waiting.empty()) log_info("waits for {}", waiting);
  }
}

Time Member::next_wake() const {
  if (expelled_ || left_) return Time::never();
  Time next = std::min({next_connect_, lane_ != 0 ? next_beat_ : Time::never(), leave_deadline_});
  if (!joined()) next = std::min({next, join_deadline_, next_complaint_});
  return next;
}

void Member::arrive_at_barrier() {
  CHECK(!at_barrier_, "one barrier at a time");
  at_barrier_ = true;
  barrier_missing_ = "the scheduler's answer";
  if (open_) send(FrameType::kBarrier, nullptr, barriers_ + 1);
}

void Member::leave(bool failed, std::string reason) {
  if (leaving_ || expelled_) return;
  leaving_ = true;
  goodbye_ = {failed, std::move(reason)};
  leave_deadline_ = clock_.now() + options_.timing.stop;
  if (open_) beat();
  if (!joined()) left_ = true;
}

std::string Member::waiting_for() const {
  if (expelled_ || left_) return {};
  if (leaving_) return fmt::format("the scheduler at {} to hear the goodbye", options_.scheduler);
  if (!open_ || !connect_error_.empty()) {
    return fmt::format("the scheduler at {} ({})", options_.scheduler,
                       connect_error_.empty() ? "no answer yet" : connect_error_);
  }
  if (!joined()) return missing_.empty() ? fmt::format("the scheduler at {}", options_.scheduler) : missing_;
  if (at_barrier_) return fmt::format("barrier {}: {}", barriers_ + 1, barrier_missing_);
  return {};
}

void Member::expel(Error why) {
  if (expelled_) return;
  expelled_ = true;
  if (lane_ != 0) transport_.close(lane_);
  lane_ = 0;
  open_ = false;
  listener_.on_expelled(why);
}

}  // namespace pscloud

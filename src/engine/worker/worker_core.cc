#include "engine/worker/worker_core.h"

#include <algorithm>
#include <set>
#include <unordered_map>

#include "base/check.h"
#include "base/json.h"
#include "engine/node_status.h"

namespace pscloud {

WorkerCore::WorkerCore(Options options, Transport& transport, Clock& clock, Random& random, Metrics& metrics)
    : options_(std::move(options)),
      transport_(transport),
      clock_(clock),
      random_(random),
      metrics_(metrics),
      push_seconds_(metrics.histogram("pscloud_push_seconds", "from the call of a push until all servers had done it")),
      pull_seconds_(metrics.histogram("pscloud_pull_seconds", "from the call of a pull until all values were there")),
      member_(options_.member, transport, clock, random, *this) {}

void WorkerCore::start(Done ready) {
  ready_ = std::move(ready);
  member_.start();
  settle();
}

void WorkerCore::on_open(LaneId lane, const Peer&) {
  if (member_.owns(lane)) member_.on_open(lane);
  for (auto& channel : channels_) {
    if (channel->owns(lane)) channel->on_open(lane);
  }
  settle();
}

void WorkerCore::on_close(LaneId lane, const Error& why) {
  if (member_.owns(lane)) member_.on_close(lane, why);
  for (auto& channel : channels_) {
    if (channel->owns(lane)) channel->on_close(why);
  }
  settle();
}

void WorkerCore::on_frame(LaneId lane, Frame frame) {
  if (member_.owns(lane)) member_.on_frame(lane, frame);
  for (auto& channel : channels_) {
    if (!channel->owns(lane)) continue;
    channel->on_frame(frame);
    if (!channel->fenced().empty()) fail(unavailable("{}: {}", channel->owner().name(), channel->fenced()));
    break;
  }
  settle();
}

std::span<std::byte> WorkerCore::place_for(LaneId lane, const FrameHeader& header) {
  for (auto& channel : channels_) {
    if (channel->owns(lane)) return channel->place_for(header);
  }
  return {};
}

void WorkerCore::on_wake() {
  member_.on_wake();
  for (auto& channel : channels_) channel->on_wake();
  const Time now = clock_.now();
  expire_requests(now);
  if (now >= leave_deadline_ && !member_.left()) {
    fail(timed_out("leaving took more than {:.0f} s: it waited for {}", in_seconds(options_.member.timing.request),
                   waiting_for()));
  }
  member_.set_node_waiting_for(waiting_for());
  settle();
}

// All that are due at once: each would look through every queue.
void WorkerCore::expire_requests(Time now) {
  std::vector<std::shared_ptr<Request>> due;
  while (!requests_.empty() && requests_.begin()->first <= now) {
    due.push_back(std::move(requests_.begin()->second));
    requests_.erase(requests_.begin());
  }
  if (due.empty()) return;
  struct Place {
    const Channel* channel;
    bool sent;
  };
  std::unordered_map<const bool*, Place> places;
  std::unordered_map<const Channel*, std::string> queued;  // what those that were not sent wait for
  for (const auto& channel : channels_) {
    queued.emplace(channel.get(), channel->waiting_for());
    channel->each_waiting([&](const auto& wanted, bool sent) {
      places.emplace(wanted.get(), Place{channel.get(), sent});
    });
  }
  for (const auto& request : due) {
    const auto found = places.find(request->wanted.get());
    const std::string waited = request == barrier_     ? member_.waiting_for()
                               : found == places.end() ? waiting_for()
                               : found->second.sent    ? found->second.channel->waiting_for(request->wanted)
                                                       : queued[found->second.channel];
    request->outcome = timed_out("{} took more than {:.0f} s: it waited for {}", request->what,
                                 in_seconds(options_.member.timing.request), waited);
  }
  for (const auto& request : due) *request->wanted = false;
  for (auto& channel : channels_) channel->vacate();
  for (const auto& request : due) {
    if (auto done = std::exchange(request->done, nullptr)) done(request->outcome);
  }
}

void WorkerCore::on_view(const View& view) {
  if (view.phase == Phase::kFailed) return fail(job_failed("the job failed: {}", view.reason));
  if (!channels_.empty()) return;
  for (const NodeInfo& node : view.nodes) {
    if (node.role != Role::kServer) continue;
    Channel::Options options;
    options.owner = node;
    options.session = member_.session();
    options.timing = options_.member.timing;
    options.key_cache_bytes = options_.key_cache_bytes;
    options.large_bytes = options_.large_bytes;
    options.shared_memory = options_.shared_memory;
    options.sabotage = options_.sabotage;
    channels_.push_back(std::make_unique<Channel>(std::move(options), transport_, clock_, random_, metrics_));
  }
  for (auto& channel : channels_) channel->start();
}

void WorkerCore::settle() {
  if (!begun_ && !failed() && !channels_.empty() &&
      std::ranges::all_of(channels_, [](const auto& channel) { return channel->synced(); })) {
    begun_ = true;
    // One that comes late begins at the clock of the others, the same at every owner.
    for (const auto& channel : channels_) worker_clock_ = std::max(worker_clock_, channel->min_clock());
    if (worker_clock_ > 0) submit_to_all("first clock", FrameType::kClock, nullptr, nullptr, [](const Result<>&) {});
    if (auto ready = std::exchange(ready_, nullptr)) ready({});
  }
  if (leaving_ && !member_.left()) {
    const bool idle = std::ranges::all_of(channels_, [](const auto& channel) { return channel->idle(); });
    if (idle || goodbye_.failed || failed()) member_.leave(goodbye_.failed, goodbye_.reason);
  }
  if (leaving_ && (member_.left() || failed())) {
    if (auto left = std::exchange(left_, nullptr)) {
      failed() ? left(failure_) : left({});
    }
  }
  Time next = member_.next_wake();
  for (const auto& channel : channels_) next = std::min(next, channel->next_wake());
  if (!requests_.empty()) next = std::min(next, requests_.begin()->first);
  if (!member_.left() && !failed()) next = std::min(next, leave_deadline_);
  transport_.wake_at(next);
}

std::shared_ptr<WorkerCore::Request> WorkerCore::open_request(std::string what, size_t slices, Done done,
                                                              FrameType type) {
  Result<> ended;
  if (leaving_) ended = invalid("this worker has left the job: nothing may be asked after leave()");
  if (failed()) ended = failure_;
  if (!ended || slices == 0) {
    done(ended);
    return nullptr;
  }
  auto request = std::make_shared<Request>();
  request->what = std::move(what);
  request->type = type;
  request->left = slices;
  request->done = std::move(done);
  request->deadline = clock_.now() + options_.member.timing.request;
  requests_.emplace(request->deadline, request);
  return request;
}

void WorkerCore::submit(const std::shared_ptr<Request>& request, Slice slice) {
  CHECK(slice.owner < channels_.size());
  if (!*request->wanted) return;  // its time was over before all of it had been submitted
  slice.part.clock = worker_clock_;
  slice.part.wanted = request->wanted;
  slice.part.done = [this, request, sink = std::move(slice.sink)](Result<Part::Answer> answer) {
    if (!request->done) return;  // given up before: the buffers are the user's again
    if (answer && sink) sink(*answer);
    if (!answer && request->outcome) request->outcome = answer.error();
    if (--request->left == 0) finish(request);
  };
  channels_[slice.owner]->submit(std::move(slice.part));
  settle();
}

void WorkerCore::submit(std::string what, std::vector<Slice> slices, Done done) {
  const FrameType type = slices.empty() ? FrameType::kClock : slices.front().part.type;
  const auto request = open_request(std::move(what), slices.size(), std::move(done), type);
  if (!request) return;
  for (Slice& slice : slices) {
    if (const size_t bytes = slice.value_bytes(); bytes > 0) slice.load(channels_[slice.owner]->allocate(bytes));
    submit(request, std::move(slice));
  }
}

void WorkerCore::finish(const std::shared_ptr<Request>& request) {
  const auto range = requests_.equal_range(request->deadline);
  for (auto it = range.first; it != range.second; ++it) {
    if (it->second != request) continue;
    requests_.erase(it);
    break;
  }
  *request->wanted = false;
  if (request->outcome) note_duration(*request);
  if (auto done = std::exchange(request->done, nullptr)) done(request->outcome);
}

void WorkerCore::note_duration(const Request& request) {
  const bool both = request.type == FrameType::kPushPull;
  const bool pushed = both || request.type == FrameType::kPush;
  const bool pulled = both || request.type == FrameType::kPull;
  if (!pushed && !pulled) return;
  const Time begun = request.deadline - options_.member.timing.request;
  const auto us = static_cast<uint64_t>(std::max<int64_t>(0, (clock_.now() - begun).count()));
  if (pushed) push_seconds_.add(us);
  if (pulled) pull_seconds_.add(us);
}

void WorkerCore::submit_to_all(std::string what, FrameType type, const SharedBuffer& payload,
                               const std::function<void(const Part::Answer&)>& sink, Done done) {
  std::vector<Slice> slices;
  for (uint32_t owner = 0; owner < owners(); ++owner) {
    Part part;
    part.type = type;
    part.raw = payload;
    Slice& slice = slices.emplace_back();
    slice.owner = owner;
    slice.part = std::move(part);
    slice.sink = sink;
  }
  submit(std::move(what), std::move(slices), std::move(done));
}

void WorkerCore::tick(Done done) {
  if (failed()) return done(failure_);
  ++worker_clock_;
  if (distance_ == nullptr) {
    distance_ = &metrics_.gauge("pscloud_clock_distance", "clocks that this worker is ahead of the slowest");
  }
  distance_->set(clock_distance());
  submit_to_all(fmt::format("clock {}", worker_clock_), FrameType::kClock, nullptr, nullptr, std::move(done));
}

void WorkerCore::barrier(Done done) {
  if (failed()) return done(failure_);
  if (leaving_) return done(invalid("this worker has left the job: nothing may be asked after leave()"));
  if (barrier_ && barrier_->done) return done(invalid("another thread of this worker is at a barrier"));
  if (std::exchange(barrier_unclaimed_, false)) return done({});
  const bool arrived = barrier_ != nullptr;
  barrier_ = std::make_shared<Request>();
  barrier_->what = "barrier";
  barrier_->done = std::move(done);
  barrier_->deadline = clock_.now() + options_.member.timing.request;
  requests_.emplace(barrier_->deadline, barrier_);
  if (!arrived) member_.arrive_at_barrier();
  settle();
}

void WorkerCore::on_barrier(uint64_t) {
  const auto request = std::exchange(barrier_, nullptr);
  if (!request) return;
  barrier_unclaimed_ = !request->done;
  finish(request);
}

void WorkerCore::leave(bool failed_worker, std::string reason, Done done) {
  leaving_ = true;
  goodbye_ = {failed_worker, std::move(reason)};
  left_ = std::move(done);
  leave_deadline_ = clock_.now() + options_.member.timing.request;
  settle();
}

void WorkerCore::fail(const Error& why) {
  if (failed()) return;
  failure_ = why;
  for (auto& channel : channels_) channel->fail(why);
  if (const auto request = std::exchange(barrier_, nullptr)) {
    request->outcome = why;
    finish(request);
  }
  if (auto ready = std::exchange(ready_, nullptr)) ready(why);
  // A job that failed waits for our goodbye.
  member_.leave(true, why.message);
  settle();
}

int WorkerCore::servers() const {
  std::set<uint64_t> processes;
  for (const auto& channel : channels_) processes.insert(channel->owner().process);
  return static_cast<int>(processes.size());
}

std::string WorkerCore::waiting_for() const {
  if (!requests_.empty()) {
    const auto& oldest = requests_.begin()->second;
    if (oldest == barrier_) return member_.waiting_for();
    for (const auto& channel : channels_) {
      if (channel->has_sent(oldest->wanted)) return channel->waiting_for(oldest->wanted);
    }
  }
  for (const auto& channel : channels_) {
    if (std::string text = channel->waiting_for(); !text.empty()) return text;
  }
  return member_.waiting_for();
}

// As far as the owners have told.
uint32_t WorkerCore::clock_distance() const {
  uint32_t minimum = worker_clock_;
  for (const auto& channel : channels_) minimum = std::min(minimum, channel->min_clock());
  return worker_clock_ - minimum;
}

std::string WorkerCore::status_json() const {
  if (distance_ != nullptr) distance_->set(clock_distance());
  JsonWriter json;
  const NodeInfo* self = member_.self();
  json.begin_object();
  json.field("role", "worker").field("name", self ? self->name() : std::string("worker"));
  json.field("joined", self != nullptr).field("clock", worker_clock_);
  const std::string waits = waiting_for();
  write_names(json, "waiting_for", {&waits, waits.empty() ? 0u : 1u});
  json.field("requests_under_way", uint64_t{requests_.size()});
  json.key("servers").begin_array();
  for (const auto& channel : channels_) {
    json.begin_object().field("name", channel->owner().name()).field("address", channel->owner().address);
    json.field("connected", channel->synced()).field("unanswered_bytes", channel->unanswered_bytes()).end_object();
  }
  json.end_array().end_object();
  return json.text();
}

}  // namespace pscloud

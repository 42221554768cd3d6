#include "engine/worker/channel.h"

#include <algorithm>

#include "base/log.h"

namespace pscloud {

using std::chrono::milliseconds;

namespace {
constexpr Duration kBackoffFirst = milliseconds(20);
constexpr Duration kBackoffMax = milliseconds(1000);

uint64_t bytes_of_part(const Part& part) {
  return kFrameHeaderBytes + 256 + part.keys.size() * sizeof(Key) + part.values.size() * sizeof(float) +
         (part.raw ? part.raw->size() : 0);
}

// Of one direction under way. On one machine more would only push what is needed next out of the cache. Elsewhere small
// requests wait for what is under way, and less than this would not fill a network of 100 Gbit/s and 0.2 ms there and
// back. What goes to the owner is bounded by its credit too.
constexpr uint64_t kAheadLocal = (2 << 20) + (64 << 10);  // two large parts
constexpr uint64_t kAheadFar = (4 << 20) + (64 << 10);
// Small parts do not wait for large ones to be answered.
constexpr uint64_t kAheadSmall = 16 << 20;
// Small parts that may go before a large one: then it has its turn.
constexpr size_t kPassesMax = 64;

uint64_t bytes_of_reply(const Part& part) {
  return part.pulls() && part.in_place_bytes == 0 ? uint64_t{part.count} * part.spec->width * sizeof(float) : 0;
}
}  // namespace

Channel::Channel(Options options, Transport& transport, Clock& clock, Random& random, Metrics& metrics)
    : options_(std::move(options)),
      transport_(transport),
      clock_(clock),
      random_(random),
      retry_(options_.timing.retry),
      metrics_(metrics),
      resent_(metrics.counter("pscloud_resent_requests_total", "requests sent more than once")) {}

void Channel::connect() {
  next_connect_ = Time::never();
  open_ = false;
  local_ = options_.shared_memory && !local_failed_ && !options_.owner.local.empty();
  lane_ = transport_.connect(local_ ? options_.owner.local : options_.owner.address, Role::kServer);
  sync_deadline_ = clock_.now() + options_.timing.death;
}

void Channel::on_open(LaneId lane) {
  if (lane != lane_) return;
  open_ = true;
  transport_.trust(lane);
  sync();
}

void Channel::on_close(const Error& why) {
  const bool was_open = open_;
  lane_ = 0;
  placed_ = 0;
  open_ = false;
  synced_ = false;
  next_sync_ = sync_deadline_ = Time::never();
  connect_error_ = why.message;
  if (!failure_.message.empty()) return;
  if (local_ && !was_open) {
    // Another machine, or another user: from now on over the network.
    local_failed_ = true;
    next_connect_ = clock_.now();
    return;
  }
  backoff_ = std::clamp(backoff_ * 2, kBackoffFirst, kBackoffMax);
  next_connect_ = clock_.now() + backoff_ / 2 + Duration(static_cast<int64_t>(random_.below(backoff_.count())));
}

// Asks the owner how far it is. While the answer is out, requests go on: most often nothing was lost.
void Channel::sync() {
  Frame frame;
  frame.header.type = FrameType::kSync;
  frame.header.session = options_.session;
  frame.header.seq = ++sync_number_;
  asked_before_ = next_seq_;
  frame.header.ack = oldest_unanswered();
  // Whom we mean: the address may have passed to another server since.
  frame.header.extra = options_.owner.session;
  transport_.send(lane_, std::move(frame));
  const Time now = clock_.now();
  next_sync_ = now + retry_;
  retry_ = std::min(retry_ * 2, options_.timing.retry_max);
  if (sync_deadline_ == Time::never()) sync_deadline_ = now + options_.timing.death;
}

std::span<std::byte> Channel::place_for(const FrameHeader& header) {
  placed_ = 0;
  if (header.type != FrameType::kReply || header.session != options_.session || !(header.flags & kFlagPlain)) return {};
  const auto found = sent_.find(header.seq);
  if (found == sent_.end()) return {};
  const Part& part = found->second.part;
  if (!part.pulls() || part.out.size_bytes() != header.payload_bytes || !part.wanted || !*part.wanted) return {};
  placed_ = header.seq;
  return std::as_writable_bytes(part.out);
}

void Channel::vacate() {
  const auto given_up = [](const std::shared_ptr<const bool>& wanted) { return wanted && !*wanted; };
  // The room for its bytes has been given back, and lent memory may hold other values by now. The end of a clock is
  // sent all the same: without it this worker would hold the others up for good.
  std::erase_if(queue_, [&](const Part& part) { return part.type != FrameType::kClock && given_up(part.wanted); });
  std::erase_if(waiters_, [&](const Waiter& waiter) {
    if (given_up(waiter.wanted)) *waiter.flag = true;
    return given_up(waiter.wanted);
  });
  const auto found = sent_.find(placed_);
  if (placed_ != 0 && found != sent_.end() && given_up(found->second.part.wanted)) {
    // It may be half there, and the rest would follow.
    const Error why = unavailable("a request was given up while its answer arrived");
    transport_.close(lane_);
    on_close(why);
  }
  pump();  // what stood behind it
}

void Channel::on_frame(const Frame& frame) {
  placed_ = 0;
  if (frame.header.session != options_.session) return;
  // Whatever it says shows that it lives: on a slow link the answer to our question stands behind megabytes.
  if (sync_deadline_ != Time::never()) sync_deadline_ = clock_.now() + options_.timing.death;
  switch (frame.header.type) {
    case FrameType::kReply: on_reply(frame); break;
    case FrameType::kSyncReply: on_sync_reply(frame); break;
    case FrameType::kWaiting: {
      const auto found = sent_.find(frame.header.seq);
      auto text = decode<TextMessage>(frame.bytes());
      if (found == sent_.end() || !text) break;
      found->second.waiting = std::move(text->text);
      found->second.at = clock_.now();
      break;
    }
    case FrameType::kKeysUnknown: {
      const auto found = sent_.find(frame.header.seq);
      if (found == sent_.end() || !found->second.part.spec) break;
      // Its cache had no room for this list any more: send the list.
      Sent& sent = found->second;
      table_state(sent.part).keys.forget(hash128(bytes_of(std::span<const Key>(sent.part.keys))));
      auto payload = encode_part(sent.part, sent.part.spec->push_filters);
      // Noise drawn anew may leave the range of a filter; the stream must have no hole, so it goes as it is.
      if (!payload) payload = encode_part(sent.part, {});
      sent.payload = *std::move(payload);
      transmit(found->first, sent, false);
      break;
    }
    case FrameType::kFenced: {
      auto text = decode<TextMessage>(frame.bytes());
      fenced_ = text ? text->text : "this worker takes part no longer";
      break;
    }
    default: break;  // nothing an owner sends
  }
}

void Channel::on_sync_reply(const Frame& frame) {
  auto state = decode<SyncReplyMessage>(frame.bytes());
  // Only the answer to the latest question counts: an older one would tell of requests as lost that are on their way.
  if (!state || frame.header.seq != sync_number_) return;
  sync_deadline_ = Time::never();
  synced_ = true;
  // Not in on_open: a server that refuses our certificate closes the lane after it has opened here.
  backoff_ = Duration{};
  connect_error_.clear();
  if (said_how_ != local_) {
    said_how_ = local_;
    log_info("{}: {}", options_.owner.name(), local_ ? "by shared memory" : "over the network");
  }
  credit_ = Credit::unpack(state->credit);
  min_clock_ = std::max(min_clock_, state->min_clock);
  for (auto& [seq, sent] : sent_) {
    // What was sent after the question is still on its way; if it is lost the next question finds out.
    if (seq >= asked_before_) break;
    const bool waits = std::ranges::find(state->waiting, seq) != state->waiting.end();
    if (waits) {
      sent.at = clock_.now();
    } else {
      resent_.add();
      // A push that arrived needs only its answer; a read is done again.
      const bool arrived = seq <= state->accepted;
      transmit(seq, sent, arrived && !is_read(sent.part.type));
    }
  }
  pump();
}

void Channel::on_reply(const Frame& frame) {
  const auto found = sent_.find(frame.header.seq);
  if (found == sent_.end()) return;  // answered before
  Sent sent = std::move(found->second);
  Result<Part::Answer> answer = Part::Answer{};
  if (frame.header.flags & kFlagError) {
    auto error = decode<ErrorMessage>(frame.bytes());
    answer = error ? Error{error->code, fmt::format("{}: {}", options_.owner.name(), error->text)} : error.error();
  } else if (sent.part.in_place_bytes > 0) {
    answer->raw = frame.values;
    if (!(frame.header.flags & kFlagInPlace)) {
      answer = unavailable("{}: its rows cannot be read where they lie", options_.owner.name());
    } else if (!frame.values || !frame.values->is_peers() || frame.values->size() != sent.part.in_place_bytes) {
      answer = corrupt("{}: its rows are not where it says", options_.owner.name());
    }
  } else if (sent.part.pulls()) {
    auto payload = frame.header.count == sent.part.count
                       ? decode_payload(frame, sent.part.count, sent.part.spec->width, false, true, {&random_, nullptr})
                       : Result<DecodedPayload>(
                             corrupt("a reply with {} rows instead of {}", frame.header.count, sent.part.count));
    if (!payload) {
      // Not what was asked for; the request stays unanswered and is asked about again.
      log_warning("{}: {}", options_.owner.name(), payload.error().message);
      found->second = std::move(sent);
      return;
    }
    answer->values = std::move(payload->values);
    table_state(sent.part).traffic.pull.add(answer->values.size() * sizeof(float), frame.payload_size());
  } else {
    answer->raw = frame.payload;
  }
  sent_bytes_ -= sent.bytes;
  sent_pulls_ -= sent.part.pulls();
  reply_bytes_ -= bytes_of_reply(sent.part);
  sent_.erase(found);
  retry_ = options_.timing.retry;
  min_clock_ = std::max(min_clock_, frame.header.clock);
  credit_ = Credit::unpack(frame.header.extra);
  pump();
  sent.part.done(std::move(answer));
}

void Channel::submit(Part part) {
  if (!failure_.message.empty()) return part.done(failure_);
  put_in_queue(std::move(part));
  pump();
}

bool Channel::is_large(const Part& part) const {
  return bytes_of_part(part) + bytes_of_reply(part) >= options_.large_bytes;
}

// A large tensor is in nobody's way: a small part goes before large ones of other tables. Requests to one table stay in
// order, and nothing passes the end of a clock or another request that is none of rows.
void Channel::put_in_queue(Part part) {
  auto place = queue_.end();
  if (part.spec && !is_large(part) && passes_ < kPassesMax) {
    for (auto at = queue_.rbegin(); at != queue_.rend() && at->spec && at->table != part.table; ++at) {
      if (is_large(*at)) place = std::prev(at.base());
    }
  }
  if (place != queue_.end()) ++passes_;
  queue_.insert(place, std::move(part));
}

void Channel::tell_when_to_copy(uint64_t bytes, std::shared_ptr<const bool> wanted, std::atomic<bool>* flag) {
  if (bytes < options_.large_bytes || !*wanted) {
    *flag = true;
    return;
  }
  waiters_.push_back({std::move(wanted), flag});
  tell_waiters();
}

void Channel::tell_waiters() {
  if (waiters_.empty()) return;
  const bool waits = std::ranges::any_of(queue_, [this](const Part& part) { return is_large(part); });
  if (waits && failure_.message.empty()) return;
  for (const Waiter& waiter : std::exchange(waiters_, {})) *waiter.flag = true;
}

// Sends what the credit allows, in order.
void Channel::pump() {
  while (synced_ && !queue_.empty() && failure_.message.empty()) {
    Part& part = queue_.front();
    // The end of a clock says that its reads are done: a read repeated after it could see the next clock.
    if (part.type == FrameType::kClock && sent_pulls_ > 0) break;
    // Counted as if no filter helped: the owner holds it unpacked, and may ask for a key list that it forgot.
    const uint64_t bytes_most = bytes_of_part(part);
    const uint64_t reply_bytes = bytes_of_reply(part);
    const uint64_t ahead = !is_large(part) ? kAheadSmall : local_ ? kAheadLocal : kAheadFar;
    const bool room = sent_.size() < credit_.requests &&
                      sent_bytes_ + bytes_most <= std::min<uint64_t>(credit_.bytes, ahead) &&
                      reply_bytes_ + reply_bytes <= ahead;
    if (!room && !sent_.empty() && !options_.sabotage.no_bound) break;

    if (is_large(part)) passes_ = 0;
    Result<EncodedPayload> payload = EncodedPayload{.head = part.raw, .values = nullptr};
    if (part.spec) payload = encode_part(part, part.spec->push_filters);
    Sent sent;
    sent.part = std::move(part);
    queue_.pop_front();
    if (!payload) {
      sent.part.done(std::move(payload.error()));
      continue;
    }
    sent.payload = *std::move(payload);
    sent.bytes = bytes_most;
    const uint64_t seq = next_seq_++;
    sent_bytes_ += sent.bytes;
    sent_pulls_ += sent.part.pulls();
    reply_bytes_ += reply_bytes;
    transmit(seq, sent_.emplace(seq, std::move(sent)).first->second, false);
  }
  tell_waiters();
}

Result<EncodedPayload> Channel::encode_part(const Part& part, std::span<const FilterSpec> filters) {
  TableState& state = table_state(part);
  auto payload = TRY(encode_payload(filters, part.keys, part.values, part.count, {&random_, &state.keys}));
  state.traffic.push.add(part.keys.size() * sizeof(Key) + part.values.size() * sizeof(float), payload.size());
  return payload;
}

void Channel::transmit(uint64_t seq, Sent& sent, bool outcome_only) {
  Frame frame;
  frame.header.type = sent.part.type;
  frame.header.flags = (sent.part.range ? kFlagRange : 0) | (outcome_only ? kFlagOutcomeOnly : 0) |
                       (sent.part.in_place_bytes > 0 ? kFlagInPlace : 0);
  frame.header.session = options_.session;
  frame.header.seq = seq;
  frame.header.ack = oldest_unanswered();
  frame.header.extra = sent.part.first;
  frame.header.table = sent.part.table;
  frame.header.count = sent.part.count;
  frame.header.clock = sent.part.clock;
  if (!outcome_only) sent.payload.put_in(frame);
  sent.at = clock_.now();
  sent.waiting.clear();
  next_sync_ = std::min(next_sync_, sent.at + retry_);
  transport_.send(lane_, std::move(frame));
}

void Channel::on_wake() {
  const Time now = clock_.now();
  if (!failure_.message.empty()) return;
  if (now >= next_connect_) connect();
  if (now >= sync_deadline_) {
    transport_.close(lane_);
    on_close(timed_out("{} at {} has not answered for {:.1f} s", options_.owner.name(), options_.owner.address,
                       in_seconds(options_.timing.death)));
    return;
  }
  if (!open_ || now < next_sync_) return;
  // One that waits for other workers is asked about seldom: the owner answers by itself when it can.
  Time due = Time::never();
  for (const auto& [seq, sent] : sent_) {
    due = std::min(due, sent.at + (sent.waiting.empty() ? options_.timing.retry : options_.timing.retry_max));
  }
  if (!synced_ || now >= due) {
    sync();
  } else {
    next_sync_ = due;
  }
}

Time Channel::next_wake() const {
  if (!failure_.message.empty()) return Time::never();
  return std::min({next_connect_, sync_deadline_, open_ && (!sent_.empty() || !synced_) ? next_sync_ : Time::never()});
}

void Channel::fail(const Error& why) {
  if (!failure_.message.empty()) return;
  failure_ = why;
  if (lane_ != 0) transport_.close(lane_);
  lane_ = 0;
  open_ = synced_ = false;
  auto sent = std::exchange(sent_, {});
  auto queue = std::exchange(queue_, {});
  sent_bytes_ = sent_pulls_ = reply_bytes_ = 0;
  tell_waiters();
  for (auto& [seq, request] : sent) request.part.done(why);
  for (Part& part : queue) part.done(why);
}

Channel::TableState& Channel::table_state(const Part& part) {
  const auto found = tables_.find(part.table);
  if (found != tables_.end()) return found->second;
  return tables_.emplace(part.table, TableState{KeyCache(options_.key_cache_bytes), {metrics_, part.spec->name}})
      .first->second;
}

bool Channel::has_sent(const std::shared_ptr<const bool>& wanted) const {
  return std::ranges::any_of(sent_, [&](const auto& one) { return one.second.part.wanted == wanted; });
}

std::string Channel::waiting_for(const std::shared_ptr<const bool>& wanted) const {
  if (idle()) return {};
  std::string name = fmt::format("{} at {}", options_.owner.name(), options_.owner.address);
  if (!synced_) return connect_error_.empty() ? name : fmt::format("{} ({})", name, connect_error_);
  // One that was not sent waits for what was.
  const bool sent_itself = wanted && has_sent(wanted);
  for (const auto& [seq, sent] : sent_) {
    if (sent_itself && sent.part.wanted != wanted) continue;
    if (!sent.waiting.empty()) return fmt::format("{} ({} waits for it)", sent.waiting, options_.owner.name());
  }
  return name;
}

}  // namespace pscloud

#include "net/fake.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace pscloud {

FakeTransport& FakeNetwork::add_host(LaneHandler& handler) {
  hosts_.push_back(std::make_unique<FakeTransport>(*this, static_cast<int>(hosts_.size()), handler));
  return *hosts_.back();
}

Result<std::string> FakeTransport::listen(const std::string& address) {
  // A host that was killed leaves its address to the one started in its place.
  network_.listeners_[address] = host_;
  return address;
}

void FakeTransport::trust(LaneId lane) {
  const auto found = network_.lanes_.find(lane);
  if (found == network_.lanes_.end()) return;
  const auto [connection, end] = found->second;
  network_.connections_[connection].trusted[end] = true;
}

void FakeTransport::close(LaneId lane) {
  const auto found = network_.lanes_.find(lane);
  if (found == network_.lanes_.end()) return;
  const auto [connection, end] = found->second;
  network_.connections_[connection].deaf[end] = true;
  network_.close(lane, true);
}

void FakeNetwork::count_fault(const std::string& kind, const Connection& connection) {
  count_fault(kind);
  const Time now = clock_.now();
  recent_faults_.push_back({now, {connection.host[0], connection.host[1]}});
  while (now - recent_faults_.front().time > std::chrono::seconds(30)) recent_faults_.pop_front();
}

uint64_t FakeNetwork::faults_between(int a, int b, Time since) const {
  return std::ranges::count_if(recent_faults_, [&](const Fault& fault) {
    const auto [x, y] = fault.host;
    return fault.time >= since && ((x == a && y == b) || (x == b && y == a));
  });
}

Duration FakeNetwork::delay(const Connection& connection) {
  if (random_.chance(faults_.slow)) {
    count_fault("delayed", connection);
    return Duration(1 + static_cast<int64_t>(random_.below(faults_.slow_max.count())));
  }
  return Duration(1 + static_cast<int64_t>(random_.below(faults_.delay_max.count())));
}

void FakeNetwork::push(Event event) {
  event.order = ++orders_;
  events_.push(std::move(event));
}

void FakeNetwork::at(Time when, std::function<void()> work) {
  Event event{};
  event.time = when;
  event.kind = Kind::kWork;
  event.work = std::move(work);
  push(std::move(event));
}

LaneId FakeNetwork::connect(int host, const std::string& address) {
  const LaneId lane = next_lane_++;
  const auto listener = listeners_.find(address);
  const int peer = listener == listeners_.end() ? -1 : listener->second;
  connections_.push_back({{host, peer}, {lane, next_lane_++}, {}, {}, false, {}, {}});
  const size_t id = connections_.size() - 1;
  lanes_[lane] = {id, 0};
  Event event{};
  event.time = clock_.now() + delay(connections_[id]);
  event.connection = id;
  if (peer < 0 || hosts_[peer]->handler_ == nullptr) {
    event.kind = Kind::kRefused;
    event.host = host;
    event.end = 0;
  } else if (blocked(host, peer) || random_.chance(faults_.lose)) {
    count_fault("lost", connections_[id]);
    return lane;  // nobody will answer: whoever connects must give up by itself
  } else {
    event.kind = Kind::kAccept;
    event.host = peer;
    event.end = 1;
  }
  push(std::move(event));
  return lane;
}

void FakeNetwork::send(int host, LaneId lane, Frame frame) {
  const auto found = lanes_.find(lane);
  if (found == lanes_.end()) return;
  const auto [id, end] = found->second;
  Connection& connection = connections_[id];
  if (connection.broken || !connection.open[end]) return;
  const int peer = connection.host[1 - end];
  if (random_.chance(faults_.cut)) {
    count_fault("cut", connection);
    const bool half = random_.chance(faults_.half_open);
    close(lane, !half);
    // Our own end hears of it, too; the peer of a half-open one finds out by silence.
    Event event{};
    event.time = clock_.now() + delay(connection);
    event.kind = Kind::kClosed;
    event.host = host;
    event.connection = id;
    event.end = end;
    push(std::move(event));
    return;
  }
  if (blocked(host, peer)) return count_fault("partitioned", connection);
  if (random_.chance(faults_.lose)) return count_fault("lost", connection);
  const int copies = random_.chance(faults_.repeat) ? 2 : 1;
  if (copies > 1) count_fault("repeated");
  for (int copy = 0; copy < copies; ++copy) {
    Event event{};
    event.time = clock_.now() + delay(connection);
    if (random_.chance(faults_.reorder)) {
      count_fault("reordered");
    } else {
      event.time = std::max(event.time, connection.last_arrival[1 - end]);
      connection.last_arrival[1 - end] = event.time;
    }
    event.kind = Kind::kFrame;
    event.host = peer;
    event.connection = id;
    event.end = 1 - end;
    event.header = encode_header(frame, false);
    event.payload = frame.payload;
    event.values = frame.values;
    push(std::move(event));
  }
}

// `tell`: the other end hears of it.
void FakeNetwork::close(LaneId lane, bool tell) {
  const auto found = lanes_.find(lane);
  if (found == lanes_.end()) return;
  const auto [id, end] = found->second;
  Connection& connection = connections_[id];
  const bool was_open = !connection.broken;
  // What was sent before still arrives at the other end, unless the connection had been broken.
  connection.open[end] = false;
  if (tell && was_open && connection.host[1 - end] >= 0) {
    Event event{};
    event.time = std::max(clock_.now() + delay(connection), connection.last_arrival[1 - end]);
    event.kind = Kind::kClosed;
    event.host = connection.host[1 - end];
    event.connection = id;
    event.end = 1 - end;
    push(std::move(event));
  }
}

void FakeNetwork::wake_at(int host, Time when) {
  FakeTransport& transport = *hosts_[host];
  transport.wake_wanted_ = when;
  if (when == Time::never() || when >= transport.wake_event_) return;
  transport.wake_event_ = std::max(when, clock_.now());
  Event event{};
  event.time = transport.wake_event_;
  event.kind = Kind::kWake;
  event.host = host;
  push(std::move(event));
}

void FakeNetwork::pause(int host, Time until) {
  count_fault("paused");
  hosts_[host]->paused_until_ = std::max(hosts_[host]->paused_until_, until);
}

void FakeNetwork::kill(int host, bool silent) {
  count_fault(silent ? "power cut" : "killed");
  hosts_[host]->handler_ = nullptr;
  for (size_t id = 0; id < connections_.size(); ++id) {
    Connection& connection = connections_[id];
    for (int end = 0; end < 2; ++end) {
      if (connection.host[end] != host) continue;
      if (connection.open[end]) close(connection.lane[end], !silent);
      connection.open[end] = false;
    }
  }
}

bool FakeNetwork::step() {
  if (events_.empty()) return false;
  Event event = std::move(const_cast<Event&>(events_.top()));
  events_.pop();
  clock_.advance_to(event.time);
  last_ = {event.time, -1, event.host, "work", {}, 0, 0};
  if (event.kind == Kind::kWork) {
    event.work();
    return true;
  }
  FakeTransport& transport = *hosts_[event.host];
  if (transport.handler_ == nullptr) {
    last_.what = "to a dead host";
    // One who connects to a host that died meanwhile is refused.
    if (event.kind == Kind::kAccept) {
      Event refused{};
      refused.time = clock_.now() + delay(connections_[event.connection]);
      refused.kind = Kind::kRefused;
      refused.connection = event.connection;
      refused.host = connections_[event.connection].host[0];
      push(std::move(refused));
    }
    return true;
  }
  if (transport.paused_until_ > event.time) {
    // Kept in order by pushing it again behind what is there.
    event.time = transport.paused_until_;
    if (event.kind == Kind::kWake) transport.wake_event_ = event.time;
    last_.what = "kept while paused";
    push(std::move(event));
    return true;
  }
  deliver(event);
  return true;
}

void FakeNetwork::deliver(Event& event) {
  FakeTransport& transport = *hosts_[event.host];
  if (event.kind == Kind::kWake) {
    last_.what = "wake";
    if (event.time == transport.wake_event_) transport.wake_event_ = Time::never();
    if (transport.wake_wanted_ > event.time) {
      // It changed its mind: later.
      const Time wanted = transport.wake_wanted_;
      if (wanted < transport.wake_event_) wake_at(event.host, wanted);
      return;
    }
    transport.wake_wanted_ = Time::never();
    transport.handler_->on_wake();
    return;
  }
  const size_t id = event.connection;
  const int end = event.end;
  last_.from = connections_[id].host[1 - end];
  const LaneId lane = connections_[id].lane[end];
  switch (event.kind) {
    case Kind::kAccept: {
      last_.what = "accept";
      Connection& connection = connections_[id];
      if (connection.broken) break;  // whoever connected has given up
      lanes_[lane] = {id, 1};
      connection.open[1] = true;
      Event opened{};
      opened.time = std::max(clock_.now() + delay(connection), connection.last_arrival[0]);
      connection.last_arrival[0] = opened.time;
      opened.kind = Kind::kOpened;
      opened.host = connection.host[0];
      opened.connection = id;
      opened.end = 0;
      if (!blocked(connection.host[1], connection.host[0])) push(std::move(opened));
      transport.handler_->on_open(lane, {"host " + std::to_string(last_.from), std::nullopt, ""});
      break;
    }
    case Kind::kOpened:
      last_.what = "open";
      if (connections_[id].broken || connections_[id].deaf[0]) break;
      connections_[id].open[0] = true;
      transport.handler_->on_open(lane, {"host " + std::to_string(last_.from), std::nullopt, ""});
      break;
    case Kind::kRefused:
      last_.what = "refused";
      connections_[id].broken = true;
      if (!std::exchange(connections_[id].deaf[0], true)) {
        transport.handler_->on_close(lane, unavailable("connection refused"));
      }
      break;
    case Kind::kFrame: {
      last_.what = "frame";
      Connection& connection = connections_[id];
      const auto header =
          decode_header(event.header, connection.trusted[end] ? kPayloadBytesMax : kPayloadBytesStranger);
      CHECK(header, "{}", header.error().message);
      last_.type = header->type;
      last_.session = header->session;
      last_.seq = header->seq;
      if (connection.broken || !connection.open[end]) {
        last_.what = "frame on a closed lane";
        break;
      }
      transport.handler_->on_frame(lane, {*header, std::move(event.payload), std::move(event.values)});
      break;
    }
    case Kind::kClosed: {
      last_.what = "closed";
      Connection& connection = connections_[id];
      // Not by `broken`, which only says that one of the ends has heard of it. An end that was never accepted has no
      // lane.
      const bool tell = !std::exchange(connection.deaf[end], true) && lanes_.contains(lane);
      connection.open[end] = false;
      connection.broken = true;
      if (tell) transport.handler_->on_close(lane, unavailable("connection closed"));
      break;
    }
    case Kind::kWake:
    case Kind::kWork: break;
  }
}

}  // namespace pscloud

#include "net/tcp_connection.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/check.h"

namespace pscloud {
namespace {

// One lane moves so much, then the others have their turn.
constexpr size_t kTurnBytes = 4 << 20;
// Small frames wait for the end of the turn, to travel together; so much is sent at once.
constexpr uint64_t kSendNowBytes = 64 << 10;
constexpr size_t kPartsMax = 96;  // of one sendmsg
constexpr std::chrono::seconds kPauseMax{3};

std::string seconds_text(Duration d) { return fmt::format("{:g} s", std::chrono::duration<double>(d).count()); }

}  // namespace

TcpConnection::TcpConnection(TcpConnectionOwner& owner, LaneId lane, std::string address, Role expected)
    : owner_(owner), lane_(lane), address_(std::move(address)), expected_(expected) {
  set_deadline(owner_.options().connect_timeout);
}

TcpConnection::TcpConnection(TcpConnectionOwner& owner, LaneId lane, std::string address, Fd fd, bool local)
    : owner_(owner), lane_(lane), address_(std::move(address)), socket_(std::move(fd)), local_(local) {}

TcpConnection::~TcpConnection() {
  clear_deadline();
  unwatch();
}

// What is kept for later holds the lane's number, not a pointer: it may be done after the connection is gone.
void TcpConnection::later(void (TcpConnection::*work)()) {
  owner_.reactor().later([owner = &owner_, lane = lane_, work] {
    if (TcpConnection* self = owner->find(lane)) (self->*work)();
  });
}

void TcpConnection::set_deadline(Duration from_now) {
  clear_deadline();
  deadline_ = owner_.reactor().set_timer(std::chrono::steady_clock::now() + from_now, [this] { on_deadline(); });
}

void TcpConnection::clear_deadline() { owner_.reactor().clear_timer(deadline_); }

void TcpConnection::on_deadline() {
  const TcpOptions& options = owner_.options();
  switch (state_) {
    case State::kConnecting:
      fail(unavailable("{}: no connection within {}", address_, seconds_text(options.connect_timeout)));
      break;
    case State::kHandshake:
      fail(unavailable("{}: no TLS handshake within {}", address_, seconds_text(options.handshake_timeout)));
      break;
    case State::kSharing:
      fail(unavailable("{}: no shared memory within {}", address_, seconds_text(options.handshake_timeout)));
      break;
    case State::kOpen:
      fail(timed_out("{}: sent no frame within {}", address_, seconds_text(options.first_frame_timeout)));
      break;
    case State::kClosing: fail(timed_out("{}: did not take what was left to send", address_)); break;
    case State::kGone: break;
  }
}

Result<> TcpConnection::watch(Fd fd) {
  watch_ = TRY(owner_.reactor().watch(fd.get(), [owner = &owner_, lane = lane_](Reactor::Change change) {
    if (TcpConnection* self = owner->find(lane)) self->on_ready(change);
  }));
  socket_ = std::move(fd);
  return {};
}

void TcpConnection::unwatch() {
  if (bell_watch_ != 0) owner_.reactor().unwatch(link_->bell(), std::exchange(bell_watch_, 0));
  if (watch_ != 0) owner_.reactor().unwatch(socket_.get(), std::exchange(watch_, 0));
  socket_ = {};
}

void TcpConnection::on_ready(Reactor::Change change) {
  peer_ended_ |= change.ended;
  switch (state_) {
    case State::kConnecting: return change.writable ? on_dialled() : void();
    case State::kHandshake: return handshake();
    case State::kSharing: return change.readable ? exchange() : void();
    case State::kGone: return;
    case State::kOpen:
    case State::kClosing: break;
  }
  if (link_) return change.readable ? exchange() : void();
  if (change.writable || (change.readable && write_wants_read_)) {
    write_blocked_ = write_wants_read_ = false;
    write_turn();
    if (read_paused_ && pause_is_over()) later(&TcpConnection::read_turn);
  }
  if (change.readable || (change.writable && read_wants_write_)) {
    read_wants_write_ = false;
    read_turn();
  }
}

void TcpConnection::start() {
  if (auto watched = watch(std::move(socket_)); !watched) {
    return fail(unavailable("{}: {}", address_, watched.error().message));
  }
  begin();
}

void TcpConnection::dial(std::vector<Endpoint> endpoints) {
  local_ = !endpoints.empty() && endpoints.front().storage.ss_family == AF_UNIX;
  endpoints_ = std::move(endpoints);
  last_failure_ = unavailable("has no address");
  dial_next();
}

void TcpConnection::dial_next() {
  while (state_ == State::kConnecting && next_endpoint_ < endpoints_.size()) {
    auto fd = begin_connect(endpoints_[next_endpoint_++]);
    const auto watched = fd ? watch(*std::move(fd)) : Result<>(fd.error());
    if (watched) return;  // it says when it is writable
    last_failure_ = watched.error();
  }
  fail(unavailable("{}: {}", address_, last_failure_.message));
}

void TcpConnection::on_dialled() {
  if (auto connected = end_connect(socket_.get()); !connected) {
    last_failure_ = connected.error();
    unwatch();
    peer_ended_ = false;
    return dial_next();
  }
  // The name of a server's unix socket is free for anybody when the server has died.
  if (remote_endpoint(socket_.get()).storage.ss_family == AF_UNIX && !same_user(socket_.get())) {
    return fail(unavailable("{}: another user listens there", address_));
  }
  begin();
}

// With a connected socket.
void TcpConnection::begin() {
  set_lane_options(socket_.get());
  // TLS has its own checks, and within one machine no wire can garble anything.
  const Endpoint peer = remote_endpoint(socket_.get());
  check_payloads_ = owner_.options().insecure && !is_loopback(peer.host());
  stream_ = owner_.make_stream(*this, socket_.get());
  state_ = State::kHandshake;
  set_deadline(owner_.options().handshake_timeout);
  handshake();
}

void TcpConnection::handshake() {
  switch (stream_->handshake().status) {
    case Progress::kWantRead:
    case Progress::kWantWrite: return;
    case Progress::kEnd: return fail(unavailable("{}: the peer ended the TLS handshake", address_));
    case Progress::kFailed: return fail(stream_failure());
    case Progress::kDone: break;
  }
  if (local_) return share_memory();
  become_open();
}

// Each side has proven who it is, as far as it must; now they show each other their memory.
void TcpConnection::share_memory() {
  state_ = State::kSharing;
  auto link = ShmLink::make(socket_.get(), accepted(), owner_.lent());
  if (!link) return fail(unavailable("{}: {}", address_, link.error().message));
  link_ = *std::move(link);
  const auto watched = owner_.reactor().watch_bell(link_->bell());  // in each turn the transport looks at every link
  if (!watched) return fail(unavailable("{}: {}", address_, watched.error().message));
  bell_watch_ = *watched;
  exchange();
}

// What the unix socket has: memory of the peer, or its end.
void TcpConnection::exchange() {
  const auto ready = link_->exchange();
  if (!ready) {
    link_turn();  // what it sent before it ended
    return fail({ready.error().code, fmt::format("{}: {}", address_, ready.error().message)});
  }
  if (*ready && state_ == State::kSharing) become_open();
}

void TcpConnection::link_turn() {
  if (!link()) return;
  const auto taken = link_->receive(payload_max_, owner_.pool(), [this](Frame frame) {
    if (state_ != State::kOpen) return false;
    if (!std::exchange(first_frame_, true)) {
      become_known();
      if (accepted()) clear_deadline();
    }
    owner_.connection_frame(*this, std::move(frame));
    return state_ == State::kOpen;
  });
  if (!taken) return fail(corrupt("{}: {}", address_, taken.error().message));
  if (state_ == State::kClosing && link_->idle()) fail(unavailable("closed"));
}

void TcpConnection::become_open() {
  state_ = State::kOpen;
  was_open_ = true;
  if (accepted()) {
    set_deadline(owner_.options().first_frame_timeout);
  } else {
    clear_deadline();
  }
  Peer peer{.address = address_, .role = {}, .name = {}};
  stream_->identify(peer);
  if (peer.role) become_known();
  owner_.connection_open(*this, peer);
  if (link_) {
    for (Frame& frame : std::exchange(early_, {})) send(std::move(frame));
    return;
  }
  write_turn();                      // what was queued before
  later(&TcpConnection::read_turn);  // the stream may have read beyond the handshake
}

Error TcpConnection::stream_failure() const {
  return {stream_->error().code, fmt::format("{}: {}", address_, stream_->error().message)};
}

void TcpConnection::become_known() {
  if (!stranger()) return;
  known_ = true;
  owner_.connection_known(*this);
}

void TcpConnection::fail(Error why) {
  if (state_ == State::kGone) return;
  state_ = State::kGone;
  why_ = std::move(why);
  queue_.clear();
  unsent_bytes_ = 0;
  clear_deadline();
  unwatch();
  later(&TcpConnection::report_gone);
}

bool TcpConnection::close() {
  closed_by_us_ = true;
  if (state_ == State::kConnecting || state_ == State::kHandshake || state_ == State::kSharing) {
    state_ = State::kGone;
    return true;
  }
  if (state_ == State::kOpen) {
    state_ = State::kClosing;
    set_deadline(owner_.options().linger);
    if (link_) {
      later(&TcpConnection::link_turn);
      return false;
    }
    later(&TcpConnection::write_turn);
  }
  return false;
}

void TcpConnection::read_turn() {
  // A longer pause, and the peer's system would take the lane for dead (TCP_USER_TIMEOUT).
  const bool paused_enough = pause_is_over();
  if (paused_enough) read_paused_ = false;
  for (size_t moved = 0; state_ == State::kOpen || state_ == State::kClosing;) {
    if (moved >= kTurnBytes) return later(&TcpConnection::read_turn);
    // Who does not read what it asked for is not read from. Only one side may do so, or both could wait for ever.
    if (accepted() && write_blocked_ && !write_wants_read_ && unsent_bytes_ >= kSendNowBytes && !paused_enough) {
      if (!std::exchange(read_paused_, true)) paused_at_ = std::chrono::steady_clock::now();
      return;
    }

    // What belongs to the payload goes straight there; what follows it, or a lane we closed, to the scratch room.
    const std::span<std::byte> scratch = owner_.scratch();
    const size_t wanted = state_ == State::kOpen ? payload_.size() - payload_filled_ : 0;
    std::array<iovec, 2> room;
    size_t parts = 0;
    if (wanted > 0) room[parts++] = {payload_.data() + payload_filled_, wanted};
    room[parts++] = {scratch.data(), scratch.size()};

    const Progress progress = stream_->read(std::span(room).first(parts));
    switch (progress.status) {
      case Progress::kDone: break;
      case Progress::kWantWrite: read_wants_write_ = true; return;
      case Progress::kWantRead:
        if (write_failure_) return fail(*write_failure_);
        return;
      case Progress::kEnd:
        if (header_filled_ > 0) return fail(unavailable("{}: the connection broke in the middle of a frame", address_));
        return fail(unavailable("{}: closed by the peer", address_));
      case Progress::kFailed: return fail(stream_failure());
    }
    moved += progress.bytes;
    if (state_ == State::kClosing) continue;
    const size_t direct = std::min(progress.bytes, wanted);
    payload_filled_ += direct;
    if (direct > 0 && direct == wanted && !finish_frame()) continue;
    take(scratch.first(progress.bytes - direct));
    if (progress.drained && !peer_ended_ && state_ == State::kOpen && !write_failure_) return;
  }
}

bool TcpConnection::pause_is_over() const {
  return read_paused_ && std::chrono::steady_clock::now() - paused_at_ > kPauseMax;
}

// Frames, or parts of them, that were read into the scratch room.
void TcpConnection::take(std::span<std::byte> bytes) {
  while (!bytes.empty() && state_ == State::kOpen) {
    size_t used = 0;
    if (header_filled_ < kFrameHeaderBytes) {
      used = std::min(bytes.size(), kFrameHeaderBytes - header_filled_);
      std::memcpy(header_bytes_.data() + header_filled_, bytes.data(), used);
      header_filled_ += used;
      if (header_filled_ == kFrameHeaderBytes && !begin_frame()) return;
    } else {
      used = std::min(bytes.size(), payload_.size() - payload_filled_);
      std::memcpy(payload_.data() + payload_filled_, bytes.data(), used);
      payload_filled_ += used;
      if (payload_filled_ == payload_.size() && !finish_frame()) return;
    }
    bytes = bytes.subspan(used);
  }
}

// The header is whole. False if the lane does not go on.
bool TcpConnection::begin_frame() {
  auto header = decode_header(header_bytes_, payload_max_);
  if (!header) {
    fail(corrupt("{}: {}", address_, header.error().message));
    return false;
  }
  header_ = *header;
  payload_filled_ = 0;
  if (header_.payload_bytes == 0) return finish_frame();
  payload_ = owner_.connection_buffer(*this, header_);
  return true;
}

// The payload is whole too. False if the lane does not go on.
bool TcpConnection::finish_frame() {
  if (auto checked = check_payload(header_, payload_.span()); !checked) {
    fail(corrupt("{}: {}", address_, checked.error().message));
    return false;
  }
  // How the bytes were protected on their way is no business of the receiver.
  header_.flags &= ~kFlagPayloadCheck;
  header_.payload_check = 0;
  Frame frame{.header = header_, .payload = nullptr};
  if (payload_.size() > 0) frame.payload = std::make_shared<const Buffer>(std::exchange(payload_, {}));
  header_filled_ = 0;
  payload_filled_ = 0;
  if (!first_frame_) {
    first_frame_ = true;
    become_known();
    if (accepted()) clear_deadline();
  }
  owner_.connection_frame(*this, std::move(frame));
  return state_ == State::kOpen;
}

void TcpConnection::send(Frame frame) {
  CHECK(frame.payload_size() <= kPayloadBytesMax, "payload of {} bytes", frame.payload_size());
  if (state_ == State::kClosing || state_ == State::kGone || write_failure_) return;
  if (link()) return link_->send(std::move(frame));
  if (link_ || local_) return early_.push_back(std::move(frame));
  unsent_bytes_ += frame.size();
  const HeaderBytes header = encode_header(frame, check_payloads_);
  const bool borrowed = frame.values && frame.values->is_borrowed();
  queue_.push_back({.header = header, .payload = std::move(frame.payload), .values = std::move(frame.values)});
  if (state_ == State::kOpen && !write_blocked_) {
    if (unsent_bytes_ >= kSendNowBytes) {
      write_turn();
    } else if (!std::exchange(write_posted_, true)) {
      later(&TcpConnection::write_turn);
    }
  }
  if (borrowed) keep_borrowed();
}

// Copies of the last frame in the queue what was not sent at once.
void TcpConnection::keep_borrowed() {
  if (queue_.empty()) return;
  Outgoing& last = queue_.back();
  const size_t before = last.size() - last.values->size();
  const size_t values_sent = queue_.size() > 1 ? 0 : head_sent_ - std::min(head_sent_, before);
  last.values = std::make_shared<const Buffer>(Buffer::copy_of(last.values->span().subspan(values_sent)));
  if (values_sent == 0) return;
  last.header_size = 0;
  last.payload = nullptr;
  head_sent_ = 0;
}

void TcpConnection::write_turn() {
  write_posted_ = false;
  if ((state_ != State::kOpen && state_ != State::kClosing) || write_blocked_ || ended_writing_) return;
  for (size_t moved = 0; !queue_.empty();) {
    if (moved >= kTurnBytes) {
      if (!std::exchange(write_posted_, true)) later(&TcpConnection::write_turn);
      return;
    }
    std::array<iovec, kPartsMax> parts;
    const Progress progress = stream_->write(std::span(parts).first(gather(parts)));
    switch (progress.status) {
      case Progress::kDone:
        moved += progress.bytes;
        sent(progress.bytes);
        break;
      case Progress::kWantRead: write_wants_read_ = write_blocked_ = true; return;
      case Progress::kWantWrite: write_blocked_ = true; return;
      case Progress::kEnd:
      case Progress::kFailed:
        // The peer may have said why before it closed: read what is there, then fail.
        write_failure_ =
            progress.status == Progress::kEnd ? unavailable("{}: closed by the peer", address_) : stream_failure();
        queue_.clear();
        unsent_bytes_ = 0;
        return later(&TcpConnection::read_turn);
    }
  }
  if (std::exchange(read_paused_, false)) later(&TcpConnection::read_turn);
  if (state_ == State::kClosing) {
    // Then wait for the peer to close too: closing with unread bytes would make the kernel throw away what we sent.
    ended_writing_ = true;
    stream_->end_writing();
    later(&TcpConnection::read_turn);
  }
}

// Headers and payloads from the head of the queue, without copying; how many parts.
size_t TcpConnection::gather(std::span<iovec> parts) const {
  size_t count = 0;
  size_t skip = head_sent_;
  const auto add = [&](const std::byte* data, size_t size) {
    const size_t skipped = std::min(skip, size);
    skip -= skipped;
    if (size > skipped) parts[count++] = {const_cast<std::byte*>(data) + skipped, size - skipped};
  };
  for (auto frame = queue_.begin(); frame != queue_.end() && count + 3 <= parts.size(); ++frame) {
    add(frame->header.data(), frame->header_size);
    if (frame->payload) add(frame->payload->data(), frame->payload->size());
    if (frame->values) add(frame->values->data(), frame->values->size());
  }
  return count;
}

void TcpConnection::sent(size_t bytes) {
  unsent_bytes_ -= bytes;
  head_sent_ += bytes;
  while (!queue_.empty() && head_sent_ >= queue_.front().size()) {
    head_sent_ -= queue_.front().size();
    queue_.pop_front();
  }
}

}  // namespace pscloud

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
constexpr size_t kPartsMax = 64;  // of one sendmsg

std::string seconds_text(Duration d) { return fmt::format("{:g} s", std::chrono::duration<double>(d).count()); }

}  // namespace

TcpConnection::TcpConnection(TcpConnectionOwner& owner, LaneId lane, std::string address, Role expected)
    : owner_(owner),
      lane_(lane),
      address_(std::move(address)),
      expected_(expected),
      socket_(owner.io()),
      timer_(owner.io()) {
  set_deadline(owner_.options().connect_timeout);
}

TcpConnection::TcpConnection(TcpConnectionOwner& owner, LaneId lane, std::string address, Fd fd)
    : owner_(owner),
      lane_(lane),
      address_(std::move(address)),
      socket_(owner.io()),
      timer_(owner.io()),
      accepted_fd_(std::move(fd)) {}

// Handlers hold the lane's number, not a pointer: the loop may run them after the connection is gone.
template <class F>
auto TcpConnection::later(F work) {
  return [owner = &owner_, lane = lane_, work](auto&&...) {
    if (TcpConnection* self = owner->find(lane)) work(*self);
  };
}

void TcpConnection::post(void (TcpConnection::*work)()) {
  asio::post(owner_.io(), later([work](TcpConnection& self) { (self.*work)(); }));
}

void TcpConnection::set_deadline(Duration from_now) {
  timer_.expires_after(from_now);
  timer_.async_wait(later([](TcpConnection& self) {
    // Not if the handler was already on its way when the deadline moved.
    if (self.timer_.expiry() <= asio::steady_timer::clock_type::now()) self.on_deadline();
  }));
}

void TcpConnection::clear_deadline() { timer_.expires_at(asio::steady_timer::time_point::max()); }

void TcpConnection::on_deadline() {
  const TcpOptions& options = owner_.options();
  switch (state_) {
    case State::kConnecting:
      fail(unavailable("{}: no connection within {}", address_, seconds_text(options.connect_timeout)));
      break;
    case State::kHandshake:
      fail(unavailable("{}: no TLS handshake within {}", address_, seconds_text(options.handshake_timeout)));
      break;
    case State::kOpen:
      fail(timed_out("{}: sent no frame within {}", address_, seconds_text(options.first_frame_timeout)));
      break;
    case State::kClosing: fail(timed_out("{}: did not take what was left to send", address_)); break;
    case State::kGone: break;
  }
}

void TcpConnection::wait_readable() {
  if (wait_readable_) return;
  wait_readable_ = true;
  socket_.async_wait(asio::posix::descriptor_base::wait_read, later([](TcpConnection& self) {
                       self.wait_readable_ = false;
                       if (self.state_ == State::kHandshake) return self.handshake();
                       if (std::exchange(self.write_wants_read_, false)) {
                         self.write_blocked_ = false;
                         self.write_turn();
                       }
                       self.read_turn();
                     }));
}

void TcpConnection::wait_writable() {
  if (wait_writable_) return;
  wait_writable_ = true;
  socket_.async_wait(asio::posix::descriptor_base::wait_write, later([](TcpConnection& self) {
                       self.wait_writable_ = false;
                       if (self.state_ == State::kConnecting) return self.on_dialled();
                       if (self.state_ == State::kHandshake) return self.handshake();
                       if (std::exchange(self.read_wants_write_, false)) self.read_turn();
                       self.write_blocked_ = false;
                       self.write_turn();
                     }));
}

void TcpConnection::start() { begin(std::move(accepted_fd_)); }

void TcpConnection::dial(std::vector<Endpoint> endpoints) {
  endpoints_ = std::move(endpoints);
  last_failure_ = unavailable("has no address");
  dial_next();
}

void TcpConnection::dial_next() {
  while (state_ == State::kConnecting && next_endpoint_ < endpoints_.size()) {
    auto fd = begin_connect(endpoints_[next_endpoint_++]);
    asio::error_code error;
    if (fd) socket_.assign(fd->get(), error);
    if (fd && !error) {
      fd->release();
      return wait_writable();
    }
    last_failure_ = fd ? unavailable("{}", error.message()) : fd.error();
  }
  fail(unavailable("{}: {}", address_, last_failure_.message));
}

void TcpConnection::on_dialled() {
  if (auto connected = end_connect(socket_.native_handle()); !connected) {
    last_failure_ = connected.error();
    asio::error_code ignored;
    socket_.close(ignored);
    return dial_next();
  }
  begin({});
}

// With a connected socket: `fd`, or the one we dialled.
void TcpConnection::begin(Fd fd) {
  if (fd) {
    asio::error_code error;
    socket_.assign(fd.get(), error);
    if (error) return fail(unavailable("{}: {}", address_, error.message()));
    fd.release();
  }
  set_lane_options(socket_.native_handle());
  stream_ = owner_.make_stream(*this, socket_.native_handle());
  state_ = State::kHandshake;
  set_deadline(owner_.options().handshake_timeout);
  handshake();
}

void TcpConnection::handshake() {
  switch (stream_->handshake().status) {
    case Progress::kWantRead: return wait_readable();
    case Progress::kWantWrite: return wait_writable();
    case Progress::kEnd: return fail(unavailable("{}: the peer ended the TLS handshake", address_));
    case Progress::kFailed:
      return fail({stream_->error().code, fmt::format("{}: {}", address_, stream_->error().message)});
    case Progress::kDone: break;
  }
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
  write_turn();                     // what was queued before
  post(&TcpConnection::read_turn);  // the stream may have read beyond the handshake
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
  timer_.cancel();
  asio::error_code ignored;
  socket_.close(ignored);
  asio::post(owner_.io(), later([](TcpConnection& self) { self.owner_.connection_gone(self); }));
}

bool TcpConnection::close() {
  closed_by_us_ = true;
  if (state_ == State::kConnecting || state_ == State::kHandshake) {
    state_ = State::kGone;
    return true;
  }
  if (state_ == State::kOpen) {
    state_ = State::kClosing;
    set_deadline(owner_.options().linger);
    post(&TcpConnection::write_turn);
  }
  return false;
}

void TcpConnection::read_turn() {
  for (size_t moved = 0; state_ == State::kOpen || state_ == State::kClosing;) {
    if (moved >= kTurnBytes) return post(&TcpConnection::read_turn);

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
      case Progress::kWantWrite: read_wants_write_ = true; return wait_writable();
      case Progress::kWantRead:
        if (write_failure_) return fail(*write_failure_);
        return wait_readable();
      case Progress::kEnd:
        if (header_filled_ > 0) return fail(unavailable("{}: the connection broke in the middle of a frame", address_));
        return fail(unavailable("{}: closed by the peer", address_));
      case Progress::kFailed:
        return fail({stream_->error().code, fmt::format("{}: {}", address_, stream_->error().message)});
    }
    moved += progress.bytes;
    if (state_ == State::kClosing) continue;
    const size_t direct = std::min(progress.bytes, wanted);
    payload_filled_ += direct;
    if (direct > 0 && direct == wanted && !finish_frame()) continue;
    take(scratch.first(progress.bytes - direct));
    if (progress.drained && state_ == State::kOpen && !write_failure_) return wait_readable();
  }
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
  payload_ = Buffer(header_.payload_bytes);
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
  CHECK(frame.bytes().size() <= kPayloadBytesMax, "payload of {} bytes", frame.bytes().size());
  if (state_ == State::kClosing || state_ == State::kGone || write_failure_) return;
  unsent_bytes_ += frame.size();
  const HeaderBytes header = encode_header(frame, owner_.options().insecure);
  queue_.push_back({header, std::move(frame.payload)});
  if (state_ != State::kOpen || write_blocked_) return;
  if (unsent_bytes_ >= kSendNowBytes) return write_turn();
  if (!std::exchange(write_posted_, true)) post(&TcpConnection::write_turn);
}

void TcpConnection::write_turn() {
  write_posted_ = false;
  if ((state_ != State::kOpen && state_ != State::kClosing) || write_blocked_ || ended_writing_) return;
  for (size_t moved = 0; !queue_.empty();) {
    if (moved >= kTurnBytes) {
      if (!std::exchange(write_posted_, true)) post(&TcpConnection::write_turn);
      return;
    }
    std::array<iovec, kPartsMax> parts;
    const Progress progress = stream_->write(std::span(parts).first(gather(parts)));
    switch (progress.status) {
      case Progress::kDone:
        moved += progress.bytes;
        sent(progress.bytes);
        break;
      case Progress::kWantRead: write_wants_read_ = write_blocked_ = true; return wait_readable();
      case Progress::kWantWrite: write_blocked_ = true; return wait_writable();
      case Progress::kEnd:
      case Progress::kFailed:
        // The peer may have said why before it closed: read what is there, then fail.
        write_failure_ = Error{stream_->error().code, fmt::format("{}: {}", address_, stream_->error().message)};
        queue_.clear();
        unsent_bytes_ = 0;
        return post(&TcpConnection::read_turn);
    }
  }
  if (state_ == State::kClosing) {
    // Then wait for the peer to close too: closing with unread bytes would make the kernel throw away what we sent.
    ended_writing_ = true;
    stream_->end_writing();
    post(&TcpConnection::read_turn);
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
  for (auto frame = queue_.begin(); frame != queue_.end() && count + 2 <= parts.size(); ++frame) {
    add(frame->header.data(), frame->header.size());
    if (frame->payload) add(frame->payload->data(), frame->payload->size());
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

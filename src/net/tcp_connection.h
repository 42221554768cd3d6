#pragma once

#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "net/frame.h"
#include "net/reactor.h"
#include "net/shm/link.h"
#include "net/socket.h"
#include "net/stream.h"
#include "net/tcp.h"

namespace pscloud {

class TcpConnection;

// What a connection needs of its transport, and tells it. Calls come from the loop, none from within send(), dial(),
// close() or fail().
class TcpConnectionOwner {
 public:
  virtual Reactor& reactor() = 0;
  virtual const TcpOptions& options() const = 0;
  // Room to read into, shared by all connections: nothing stays in it between two turns of the loop.
  virtual std::span<std::byte> scratch() = 0;
  // Null when the connection is gone: what was scheduled for it is then dropped.
  virtual TcpConnection* find(LaneId lane) = 0;
  virtual std::unique_ptr<Stream> make_stream(const TcpConnection& connection, int fd) = 0;

  virtual const LentMemory& lent() const = 0;
  virtual BufferPool& pool() = 0;

  virtual void connection_open(TcpConnection& connection, const Peer& peer) = 0;
  virtual void connection_known(TcpConnection& connection) = 0;  // accepted, and no longer a stranger
  virtual void connection_frame(TcpConnection& connection, Frame frame) = 0;
  // Room for the payload of the frame that begins.
  virtual Buffer connection_buffer(TcpConnection& connection, const FrameHeader& header) = 0;
  // It has ended, for `connection.why()`; to be destroyed now.
  virtual void connection_gone(TcpConnection& connection) = 0;

 protected:
  ~TcpConnectionOwner() = default;
};

// One lane, from the first attempt to connect to the last byte sent: over TCP, or over a unix socket and then through
// shared memory. Used in turns only.
class TcpConnection {
 public:
  // One that is to connect: dial() follows, or fail().
  TcpConnection(TcpConnectionOwner& owner, LaneId lane, std::string address, Role expected);
  // One that was accepted; `local`: on a unix socket, to go on through shared memory.
  TcpConnection(TcpConnectionOwner& owner, LaneId lane, std::string address, Fd fd, bool local);
  ~TcpConnection();
  TcpConnection(const TcpConnection&) = delete;
  TcpConnection& operator=(const TcpConnection&) = delete;

  LaneId lane() const { return lane_; }
  const std::string& address() const { return address_; }
  std::optional<Role> expected() const { return expected_; }  // set for one of ours
  bool accepted() const { return !expected_; }
  bool is_local() const { return local_; }
  bool stranger() const { return accepted() && !known_; }
  bool was_open() const { return was_open_; }
  bool closed_by_us() const { return closed_by_us_; }
  const Error& why() const { return why_; }
  uint64_t unsent_bytes() const { return link_ ? link_->unsent_bytes() : unsent_bytes_; }

  // Null: not through shared memory, or not yet.
  ShmLink* link() { return state_ == State::kOpen || state_ == State::kClosing ? link_.get() : nullptr; }
  // Takes and sends what there is.
  void link_turn();

  void start();                                // of one that was accepted
  void dial(std::vector<Endpoint> endpoints);  // tries them in turn
  void fail(Error why);                        // the owner is told in a later turn of the loop

  void send(Frame frame);
  void trust() { payload_max_ = kPayloadBytesMax; }
  // True: destroy it now, nothing is to be sent. False: it will say when it is gone.
  bool close();

 private:
  enum class State { kConnecting, kHandshake, kSharing, kOpen, kClosing, kGone };
  struct Outgoing {
    HeaderBytes header;
    size_t header_size = kFrameHeaderBytes;  // 0: the rest of a frame of which some was sent
    SharedBuffer payload;
    SharedBuffer values;
    size_t size() const { return header_size + (payload ? payload->size() : 0) + (values ? values->size() : 0); }
  };

  // Does `work` in this turn of the loop or the next; not if the connection is gone by then.
  void later(void (TcpConnection::*work)());
  void set_deadline(Duration from_now);
  void clear_deadline();
  void on_deadline();
  Result<> watch(Fd fd);
  void unwatch();
  void on_ready(Reactor::Change change);

  void dial_next();
  void on_dialled();
  void begin();
  void handshake();
  void share_memory();
  void exchange();
  void become_open();
  void become_known();
  Error stream_failure() const;
  void report_gone() { owner_.connection_gone(*this); }

  void read_turn();
  bool pause_is_over() const;
  void take(std::span<std::byte> bytes);
  bool begin_frame();
  bool finish_frame();
  void write_turn();
  size_t gather(std::span<iovec> parts) const;
  void sent(size_t bytes);
  void keep_borrowed();

  TcpConnectionOwner& owner_;  // borrowed
  const LaneId lane_;
  const std::string address_;
  const std::optional<Role> expected_;

  State state_ = State::kConnecting;
  bool known_ = false;
  bool was_open_ = false;
  bool first_frame_ = false;  // has come
  bool closed_by_us_ = false;
  Error why_{};

  std::vector<Endpoint> endpoints_;
  size_t next_endpoint_ = 0;
  Error last_failure_{};

  Fd socket_;
  uint64_t watch_ = 0;  // of the reactor; 0: none
  Reactor::TimerId deadline_{};
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<ShmLink> link_;
  uint64_t bell_watch_ = 0;
  bool read_wants_write_ = false;
  bool peer_ended_ = false;
  bool local_ = false;  // to be a lane through shared memory
  bool write_wants_read_ = false;

  // The frame that is arriving: first its header, then its payload straight to where it stays.
  uint32_t payload_max_ = kPayloadBytesStranger;
  bool check_payloads_ = false;  // of what we send
  HeaderBytes header_bytes_;
  size_t header_filled_ = 0;
  FrameHeader header_;
  Buffer payload_;
  size_t payload_filled_ = 0;

  std::deque<Outgoing> queue_;
  std::vector<Frame> early_;  // sent before the lane was open
  size_t head_sent_ = 0;      // bytes of the first in the queue
  uint64_t unsent_bytes_ = 0;
  bool write_posted_ = false;
  bool write_blocked_ = false;
  bool read_paused_ = false;  // until what was asked for is sent
  std::chrono::steady_clock::time_point paused_at_;
  std::optional<Error> write_failure_;
  bool ended_writing_ = false;
};

}  // namespace pscloud

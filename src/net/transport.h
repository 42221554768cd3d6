#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/clock.h"
#include "net/frame.h"
#include "pscloud/error.h"
#include "pscloud/types.h"

namespace pscloud {

// One connection of a transport, as long as it lasts. Never used again by the same transport; never 0.
using LaneId = uint64_t;

// Who is at the other end, as far as the transport could prove it.
struct Peer {
  std::string address;       // for messages to people: "127.0.0.1:40123"
  std::optional<Role> role;  // what its certificate says; none where nothing is proven (plaintext, inproc)
  std::string name;          // the certificate's name for it
};

// What a node is told. All calls come from the transport's turns, one at a time, none from within a call to it.
class LaneHandler {
 public:
  virtual ~LaneHandler() = default;
  // A lane is ready: one of ours that connected, or one that was accepted.
  virtual void on_open(LaneId lane, const Peer& peer) = 0;
  virtual void on_frame(LaneId lane, Frame frame) = 0;
  // Where the payload of the frame that begins to arrive should be put, if it has a place already; it has then all of
  // its payload_bytes there. The frame may still be lost before it is whole.
  virtual std::span<std::byte> place_for(LaneId lane, const FrameHeader& header) {
    (void)lane, (void)header;
    return {};
  }
  // The lane is gone, or could not be made. Not called for lanes that we closed.
  virtual void on_close(LaneId lane, const Error& why) = 0;
  // The time asked for by wake_at() has come.
  virtual void on_wake() = 0;
};

// Moves frames between nodes. Nothing is promised but that a frame arrives whole or not at all: the session
// layer above sends again, puts in order and drops what is repeated. Used by one thread at a time.
class Transport {
 public:
  virtual ~Transport() = default;

  // Binds and accepts lanes; returns the address others can connect to, with the port that was got. "unix:" accepts
  // lanes through shared memory from processes of this machine, under a name that was free.
  virtual Result<std::string> listen(const std::string& address) = 0;

  // Begins to connect; on_open() or on_close() follows. `expected` is the role the peer must prove, if it must.
  virtual LaneId connect(const std::string& address, Role expected) = 0;

  // Puts the frame in the lane's queue; lost without a word if the lane is gone.
  virtual void send(LaneId lane, Frame frame) = 0;
  virtual uint64_t unsent_bytes(LaneId lane) const = 0;

  // Memory to build a payload of this lane in, so that sending it costs least.
  virtual Buffer allocate(LaneId lane, size_t size) {
    (void)lane;
    return Buffer(size);
  }

  // Memory that lanes through shared memory send from without a copy; else ordinary memory.
  virtual Result<Buffer> lend(size_t size) { return Buffer(size); }

  // The other side reads lent memory where it lies.
  virtual bool shares_memory(LaneId lane) const {
    (void)lane;
    return false;
  }
  // The values of a frame may be borrowed: what is not sent at once is copied.
  virtual bool borrows(LaneId lane) const {
    (void)lane;
    return false;
  }

  // A new lane takes payloads up to kPayloadBytesStranger; this lifts it to kPayloadBytesMax.
  virtual void trust(LaneId lane) = 0;

  // What is still in the queue is sent first, for a short while; nothing more is received.
  virtual void close(LaneId lane) = 0;

  // Calls on_wake() at `when`, or earlier; each call replaces the one before.
  virtual void wake_at(Time when) = 0;
};

// A Transport of real nodes. It does its work in turns. The calls of Transport and turn() need a common lock where
// several threads make them (engine/node_loop.h); run() is for a thread that has it for itself.
class LoopTransport : public Transport {
 public:
  // Tells `handler` everything from now on. Once, before the first turn.
  virtual void start(LaneHandler& handler) = 0;

  // Does what is due, without waiting. False when stop() has been carried out: the end.
  virtual bool turn() = 0;

  // How long wait() may last now; zero if another turn has something to do. Whoever has made a turn asks this before it
  // lets the lock go: others wait already, and only now is it certain that they will be woken.
  virtual Duration idle_time() = 0;

  // Something has come. Cheap: to look for a while before sleeping.
  virtual bool has_news() const { return false; }

  // From any thread, without the lock: returns when there is something to do, or after `at_most`. One thread at a time
  // may be `interruptible`: interrupt() ends its wait, even before that has begun. For what another thread does in a
  // turn meanwhile may be just what it waits for.
  virtual void wait(Duration at_most, bool interruptible = false) = 0;
  virtual void interrupt() = 0;

  // For nodes of one process. What has come to this one may be handled by the threads of others, by `run`: it makes a
  // turn under the lock, or returns false if another thread is at it. Null: no more, and when this returns none is.
  virtual void let_others_run(std::function<bool()> run) { (void)run; }
  // From any thread, without the lock: handles what has come to others that let it, unless they are at it themselves.
  virtual void run_others() {}

  // All of the above, until stop().
  void run(LaneHandler& handler) {
    start(handler);
    while (turn()) {
      if (const Duration idle = idle_time(); idle > Duration(0)) wait(idle);
    }
  }

  // From any thread: runs `work` in a turn; after stop() it is dropped.
  virtual void post(std::function<void()> work) = 0;

  // From any thread. What is queued for sending still goes out, for a second at most.
  virtual void stop() = 0;

  // For people and metrics: "inproc", "tcp", "tls".
  virtual std::string_view name() const = 0;
};

}  // namespace pscloud

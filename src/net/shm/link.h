#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/buffer_pool.h"
#include "base/mutex.h"
#include "net/frame.h"
#include "net/shm/allocator.h"
#include "net/shm/handover.h"
#include "net/shm/lent.h"
#include "net/shm/ring.h"
#include "net/shm/segment.h"

namespace pscloud {

// Frames between two processes of one machine. Over a unix socket, on which each side has proven who it is, they hand
// each other a segment and a bell; from then on the socket only tells when the other side ends, and brings memory that
// is lent. What a peer writes is checked as bytes from any network: it cannot make us read or write outside.
class ShmLink {
 public:
  using Control = ShmControl<std::atomic<uint32_t>>;

  // `socket` stays the caller's. `first`: this side speaks first; the one that was accepted does, see exchange().
  static Result<std::unique_ptr<ShmLink>> make(int socket, bool first, const LentMemory& lent);
  ~ShmLink();

  // Reads what the socket has. True when the other side's segment is here: frames may move.
  // The accepted side speaks first: TLS may have read ahead, and would swallow what comes right behind its handshake.
  Result<bool> exchange();

  // Rings when there is something to do, after prepare_sleep(). Nobody needs to read it: each ring is an edge.
  int bell() const { return bell_.get(); }

  // Sends now what there is room for, and the rest as soon as the other side has read.
  void send(Frame frame);
  uint64_t unsent_bytes() const { return queued_bytes_; }
  bool idle() const { return queue_.empty(); }

  // Gives each frame that has come to `take`, which may return false to stop. kCorrupt: end the lane.
  Result<> receive(uint32_t payload_max, BufferPool& pool, const std::function<bool(Frame)>& take);
  // Sends on, and tells the other side what we do not need any more.
  void flush();
  bool has_news() const;

  // False if there is something to do; after true, the bell rings when there is.
  bool prepare_sleep();

  // Memory in our segment for something that is sent later; none if there is no room. Some room is left for what is
  // sent now: only that is given back without anything else being sent first.
  std::optional<Buffer> allocate(size_t size) { return allocate(size, kReserve); }

 private:
  static constexpr uint64_t kReserve = kPayloadBytesMax + 65536;  // for the largest frame
  using Place = std::pair<uint32_t, uint64_t>;                    // segment and offset
  struct Releases;
  struct Own;

  ShmLink(int socket, const LentMemory& lent, std::shared_ptr<Own> own, Fd bell);
  Result<> say_hello();
  Result<> take_over(ReceivedHandover received);
  bool fill(ShmSlot& slot, const Frame& frame);
  bool place(const SharedBuffer& buffer, ShmPiece& piece);
  std::optional<Buffer> allocate(size_t size, uint64_t reserve);
  void say_gone();
  bool room() const;
  void put(const ShmSlot& slot);
  void publish();
  Result<Frame> read_frame(const ShmSlot& slot, uint32_t payload_max, BufferPool& pool);
  Result<std::span<std::byte>> find(const ShmPiece& piece);

  const int socket_;
  const LentMemory& lent_;
  const std::shared_ptr<Own> own_;  // our segment and what of it is in use
  const Fd bell_;
  Fd peers_bell_;
  bool said_hello_ = false;
  bool failed_ = false;

  std::map<uint32_t, std::shared_ptr<ShmSegment>> peers_;  // segments of the other side; 0 has its slots
  uint64_t peers_bytes_ = 0;                               // of all of them
  std::optional<ShmDoorbell<std::atomic<uint32_t>>> doorbell_;
  const Control* peers_control_ = nullptr;
  const ShmSlot* peers_slots_ = nullptr;

  uint32_t sent_ = 0;       // slots filled
  uint32_t published_ = 0;  // of these, shown to the other side
  uint32_t taken_ = 0;
  std::deque<Frame> queue_;  // no room yet
  uint64_t queued_bytes_ = 0;
  std::multimap<Place, SharedBuffer> in_flight_;                   // until the other side has released them
  std::map<uint32_t, std::weak_ptr<const ShmSegment>> announced_;  // lent segments the other side has
  const std::shared_ptr<Releases> releases_;
};

}  // namespace pscloud

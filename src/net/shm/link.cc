#include "net/shm/link.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/check.h"

namespace pscloud {
namespace {

constexpr size_t kSlotsAt = 4096;
constexpr size_t kBlocksAt = kSlotsAt + kSlots * sizeof(ShmSlot);
constexpr size_t kSegmentBytes = size_t{64} << 20;
// Of all that a peer hands over. Only addresses, not memory; but these are wanted for tables, too.
constexpr uint64_t kPeerBytesMax = uint64_t{1} << 42;
constexpr size_t kLentMax = 1024;  // at one time
static_assert(sizeof(ShmLink::Control) <= kSlotsAt);

}  // namespace

// What we have read of the other side's memory and not yet said so. Buffers may end on any thread.
struct ShmLink::Releases {
  Mutex mutex;
  std::vector<ShmPiece> pieces GUARDED_BY(mutex);

  void add(const ShmPiece& piece) {
    MutexLock lock(mutex);
    pieces.push_back(piece);
  }
};

struct ShmLink::Own {
  explicit Own(std::shared_ptr<ShmSegment> memory)
      : segment(std::move(memory)),
        control(*new(segment->data()) Control),
        slots(reinterpret_cast<ShmSlot*>(segment->data() + kSlotsAt)),
        blocks(kBlocksAt, segment->size()) {}

  const std::shared_ptr<ShmSegment> segment;
  Control& control;
  ShmSlot* const slots;
  Mutex mutex;
  ShmAllocator blocks GUARDED_BY(mutex);
};

Result<std::unique_ptr<ShmLink>> ShmLink::make(int socket, bool first, const LentMemory& lent) {
  auto segment = TRY(ShmSegment::make(kSegmentBytes));
  Fd bell(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!bell) return unavailable("cannot make a bell for shared memory: {}", errno_text(errno));
  auto own = std::make_shared<Own>(std::move(segment));
  std::unique_ptr<ShmLink> link(new ShmLink(socket, lent, std::move(own), std::move(bell)));
  if (first) TRY(link->say_hello());
  return link;
}

ShmLink::ShmLink(int socket, const LentMemory& lent, std::shared_ptr<Own> own, Fd bell)
    : socket_(socket),
      lent_(lent),
      own_(std::move(own)),
      bell_(std::move(bell)),
      releases_(std::make_shared<Releases>()) {}

ShmLink::~ShmLink() = default;

Result<> ShmLink::say_hello() {
  said_hello_ = true;
  const int fds[] = {own_->segment->fd(), bell_.get()};
  return send_handover(socket_, {ShmHandover::kHello, 0, own_->segment->size()}, fds);
}

Result<> ShmLink::take_over(ReceivedHandover received) {
  const ShmHandover& what = received.what;
  if (what.size > kPeerBytesMax - peers_bytes_) {
    return corrupt("a peer's shared memory of {} bytes beside {}", what.size, peers_bytes_);
  }
  if (what.kind == ShmHandover::kHello) {
    if (peers_control_ != nullptr || received.fds.size() != 2 || what.segment != 0 || what.size < kBlocksAt) {
      return corrupt("a peer's shared memory is not as it must be");
    }
    auto segment = TRY(ShmSegment::map_peers(std::move(received.fds[0]), what.size));
    peers_bell_ = std::move(received.fds[1]);
    peers_control_ = reinterpret_cast<const Control*>(segment->data());
    peers_slots_ = reinterpret_cast<const ShmSlot*>(segment->data() + kSlotsAt);
    doorbell_.emplace(own_->control, *peers_control_);
    peers_[0] = std::move(segment);
    peers_bytes_ += what.size;
    if (!said_hello_) TRY(say_hello());
    return {};
  }
  if (what.kind != ShmHandover::kSegment || received.fds.size() != 1 || what.segment == 0 || !peers_control_ ||
      peers_.contains(what.segment)) {
    return corrupt("a message about shared memory that makes no sense");
  }
  // Those that are gone are told in the ring, which may not be read yet.
  if (peers_.size() > kLentMax + kSlots) return corrupt("more than {} segments of shared memory are lent", kLentMax);
  peers_[what.segment] = TRY(ShmSegment::map_peers(std::move(received.fds[0]), what.size));
  peers_bytes_ += what.size;
  return {};
}

Result<bool> ShmLink::exchange() {
  while (auto received = TRY(receive_handover(socket_))) TRY(take_over(*std::move(received)));
  return peers_control_ != nullptr;
}

std::optional<Buffer> ShmLink::allocate(size_t size, uint64_t reserve) {
  MutexLock lock(own_->mutex);
  const auto offset = own_->blocks.take(size, own_->segment->size() - reserve);
  if (!offset) return std::nullopt;
  std::byte* const first = own_->segment->data() + *offset;
  std::shared_ptr<void> keeper(first, [own = own_, offset = *offset, size](void*) {
    MutexLock inner(own->mutex);
    own->blocks.give_back(offset, size);
  });
  return Buffer({first, size}, std::move(keeper));
}

bool ShmLink::room() const { return sent_ - peers_control_->taken.load(std::memory_order_acquire) < kSlots; }

void ShmLink::put(const ShmSlot& slot) { own_->slots[sent_++ % kSlots] = slot; }

void ShmLink::publish() {
  if (published_ == sent_) return;
  published_ = sent_;
  if (doorbell_->publish(sent_)) ring(peers_bell_.get());
}

void ShmLink::send(Frame frame) {
  queued_bytes_ += frame.size();
  queue_.push_back(std::move(frame));
  flush();
}

void ShmLink::flush() {
  if (!doorbell_ || failed_) return;
  {
    MutexLock lock(releases_->mutex);
    auto& pieces = releases_->pieces;
    size_t done = 0;
    for (; done < pieces.size() && room(); ++done) {
      ShmSlot slot;
      slot.kind = ShmSlot::kRelease;
      slot.payload = pieces[done];
      put(slot);
    }
    pieces.erase(pieces.begin(), pieces.begin() + static_cast<std::ptrdiff_t>(done));
  }
  while (!queue_.empty() && room()) {
    const Frame& frame = queue_.front();
    ShmSlot slot;
    // No room in the segment: the other side will release some.
    if (!fill(slot, frame)) break;
    put(slot);
    queued_bytes_ -= frame.size();
    queue_.pop_front();
    publish();  // each at once: the other side begins while we prepare the next
  }
  publish();
}

// False: no room in the segment.
bool ShmLink::fill(ShmSlot& slot, const Frame& frame) {
  slot.kind = ShmSlot::kFrame;
  slot.header = encode_header(frame, false);
  const size_t size = frame.payload_size();
  const bool in_place = frame.values && (frame.header.flags & kFlagInPlace);
  if (size <= ShmSlot::kInlineMax && !in_place) {
    slot.inline_bytes = static_cast<uint32_t>(size);
    std::byte* to = slot.inlined.data();
    for (const Bytes bytes : {frame.bytes(), frame.value_bytes()}) {
      if (!bytes.empty()) std::memcpy(to, bytes.data(), bytes.size());
      to += bytes.size();
    }
    return true;
  }
  if (!frame.bytes().empty() && !place(frame.payload, slot.payload)) return false;
  if (frame.value_bytes().empty() || place(frame.values, slot.values)) {
    if (in_place && slot.values.segment == 0) {
      // A copy in our own segment is not where the rows lie: who asked for that must not take it for them.
      Frame copied = frame;
      copied.header.flags &= static_cast<uint16_t>(~kFlagInPlace);
      slot.header = encode_header(copied, false);
    }
    return true;
  }
  if (slot.payload.size > 0) in_flight_.erase(in_flight_.find({slot.payload.segment, slot.payload.offset}));
  return false;
}

// Finds the buffer in memory the other side sees, or copies it there.
bool ShmLink::place(const SharedBuffer& buffer, ShmPiece& piece) {
  piece.size = static_cast<uint32_t>(buffer->size());
  SharedBuffer kept = buffer;
  if (own_->segment->holds(buffer->data(), buffer->size())) {
    piece.offset = static_cast<uint64_t>(buffer->data() - own_->segment->data());
  } else if (const auto lent = lent_.find(buffer->span());
             lent.segment && (announced_.contains(lent.number) || announced_.size() < kLentMax)) {
    if (!announced_.contains(lent.number)) {
      const int fd = lent.segment->fd();
      // The socket is full or broken: it will be tried again, or the lane ends.
      if (!send_handover(socket_, {ShmHandover::kSegment, lent.number, lent.segment->size()}, {&fd, 1})) return false;
      announced_.emplace(lent.number, lent.segment);
    }
    piece.segment = lent.number;
    piece.offset = static_cast<uint64_t>(buffer->data() - lent.segment->data());
  } else {
    auto copy = allocate(buffer->size(), 0);
    if (!copy) return false;
    std::memcpy(copy->data(), buffer->data(), buffer->size());
    piece.offset = static_cast<uint64_t>(copy->data() - own_->segment->data());
    kept = std::make_shared<const Buffer>(std::move(*copy));
  }
  in_flight_.emplace(Place{piece.segment, piece.offset}, std::move(kept));
  return true;
}

// What was lent and taken back the other side has still mapped: it can let it go. Nothing of it is on its way, or
// in_flight_ would keep it.
void ShmLink::say_gone() {
  for (auto one = announced_.begin(); one != announced_.end() && room();) {
    if (!one->second.expired()) {
      ++one;
      continue;
    }
    ShmSlot slot;
    slot.kind = ShmSlot::kGone;
    slot.payload.segment = one->first;
    put(slot);
    one = announced_.erase(one);
  }
  publish();
}

bool ShmLink::has_news() const {
  return peers_control_ != nullptr && peers_control_->sent.load(std::memory_order_acquire) != taken_;
}

bool ShmLink::prepare_sleep() {
  if (!doorbell_ || failed_) return true;
  flush();
  say_gone();
  bool waits = !queue_.empty();
  {
    MutexLock lock(releases_->mutex);
    waits |= !releases_->pieces.empty();
  }
  // Room in the segment comes with a release, which is a slot like any other.
  const bool ring_full = waits && !room();
  return doorbell_->prepare_sleep(taken_, ring_full, sent_ - kSlots);
}

Result<> ShmLink::receive(uint32_t payload_max, BufferPool& pool, const std::function<bool(Frame)>& take) {
  if (!doorbell_) return {};
  doorbell_->awake();
  const uint32_t sent = peers_control_->sent.load(std::memory_order_acquire);
  if (sent - taken_ > kSlots) {
    failed_ = true;
    return corrupt("a ring of {} slots with {} in it", kSlots, sent - taken_);
  }
  bool more = true;
  while (taken_ != sent && more) {
    ShmSlot slot;
    // Copied first: the other side could change it while it is being checked.
    std::memcpy(&slot, &peers_slots_[taken_ % kSlots], sizeof slot);
    ++taken_;
    if (slot.kind == ShmSlot::kRelease) {
      const auto found = in_flight_.find({slot.payload.segment, slot.payload.offset});
      if (found == in_flight_.end()) {
        failed_ = true;
        return corrupt("memory is given back that was not in use");
      }
      in_flight_.erase(found);
      continue;
    }
    if (slot.kind == ShmSlot::kGone) {
      // A frame from there that is still in use keeps it.
      if (const auto known = find({slot.payload.segment, 0, 0}); !known || slot.payload.segment == 0) {
        failed_ = true;
        return corrupt("shared memory {} is taken back that was not lent", slot.payload.segment);
      }
      peers_bytes_ -= peers_.at(slot.payload.segment)->size();
      peers_.erase(slot.payload.segment);
      continue;
    }
    auto frame = slot.kind == ShmSlot::kFrame ? read_frame(slot, payload_max, pool)
                                              : Result<Frame>(corrupt("a slot of kind {}", slot.kind));
    if (!frame) {
      failed_ = true;
      return frame.error();
    }
    more = take(*std::move(frame));
  }
  if (doorbell_->take(taken_)) ring(peers_bell_.get());
  flush();
  return {};
}

Result<Frame> ShmLink::read_frame(const ShmSlot& slot, uint32_t payload_max, BufferPool& pool) {
  Frame frame;
  frame.header = TRY(decode_header(slot.header, payload_max));
  const uint64_t total = frame.header.payload_bytes;
  if (slot.inline_bytes > 0) {
    if (slot.inline_bytes != total || total > ShmSlot::kInlineMax) return corrupt("{} bytes in a slot", total);
    frame.payload = std::make_shared<const Buffer>(Buffer::copy_of(Bytes(slot.inlined).first(total)));
    return frame;
  }
  if (uint64_t{slot.payload.size} + slot.values.size != total) {
    return corrupt("a frame of {} bytes in pieces of {} and {}", total, slot.payload.size, slot.values.size);
  }
  if (slot.payload.size > 0) {
    // Messages, filters and keys are read more than once, so they are read from a copy.
    const auto from = TRY(find(slot.payload));
    Buffer copy = pool.take(from.size());
    std::memcpy(copy.data(), from.data(), from.size());
    frame.payload = std::make_shared<const Buffer>(std::move(copy));
    releases_->add(slot.payload);
  }
  if (slot.values.size > 0) {
    const auto from = TRY(find(slot.values));
    auto segment = peers_.at(slot.values.segment);
    std::shared_ptr<void> keeper(from.data(), [piece = slot.values, releases = releases_, segment](void*) {
      releases->add(piece);  // and the segment may go
    });
    frame.values = std::make_shared<const Buffer>(from, std::move(keeper), Buffer::kPeers);
  }
  return frame;
}

Result<std::span<std::byte>> ShmLink::find(const ShmPiece& piece) {
  auto found = peers_.find(piece.segment);
  if (found == peers_.end()) {
    const auto exchanged = exchange();  // it was handed over before the slot was filled, and its owner may have ended
    found = peers_.find(piece.segment);
    if (found == peers_.end()) TRY(exchanged);
  }
  if (found == peers_.end()) return corrupt("shared memory {} is not known", piece.segment);
  const ShmSegment& segment = *found->second;
  if (piece.offset > segment.size() || piece.size > segment.size() - piece.offset ||
      piece.offset % alignof(float) != 0) {
    return corrupt("{} bytes at {} of shared memory that has {}", piece.size, piece.offset, segment.size());
  }
  return std::span(segment.data() + piece.offset, piece.size);
}

}  // namespace pscloud

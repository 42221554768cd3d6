#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/fence.h"

namespace pscloud {

// What goes from one process to another through shared memory, and how a sleeping one is woken. Each side has a segment
// that it alone writes: its outgoing slots, how far it has read the other's, whether it sleeps. So all that a side
// reads of the other is a number or a slot, which it copies before it looks at it.
//
// A wake-up cannot be lost: who sleeps first says so and then looks once more; who sends first publishes and then looks
// whether the other sleeps. A full fence between the two steps on both sides means that at least one of them sees
// the other (docs/shared-memory.md; ring_model_test.cc tries every order).
//
// `Atomic` is std::atomic<uint32_t>, but for the test, which gives its own to run every order.

inline constexpr uint32_t kSlots = 512;

struct ShmPiece {
  uint32_t segment = 0;
  uint32_t size = 0;
  uint64_t offset = 0;
};

struct ShmSlot {
  enum Kind : uint32_t { kFrame = 1, kRelease = 2, kGone = 3 };
  static constexpr size_t kInlineMax = 152;

  uint32_t kind = 0;
  uint32_t inline_bytes = 0;  // of the payload; then it has no pieces
  ShmPiece payload;           // kRelease: what is not needed any more; kGone: the segment that was taken back
  ShmPiece values;
  std::array<std::byte, 64> header{};
  std::array<std::byte, kInlineMax> inlined{};
};
static_assert(sizeof(ShmSlot) == 256);

// What one side writes and the other reads.
template <class Atomic>
struct ShmControl {
  alignas(64) Atomic sent;   // slots we have published
  alignas(64) Atomic taken;  // slots of the other side we have read
  alignas(64) Atomic sleep;  // odd: we sleep until our bell rings; grows with each sleep
  Atomic wants_room;         // 1: we have more to send than there was room for
};

template <class Atomic>
class ShmDoorbell {
 public:
  ShmDoorbell(ShmControl<Atomic>& own, const ShmControl<Atomic>& peers) : own_(own), peers_(peers) {}

  // Sender: slots up to `sent` are filled. True: the other side sleeps, ring its bell.
  bool publish(uint32_t sent) {
    own_.sent.store(sent, std::memory_order_release);
    fence();
    return sleeps();
  }
  // Receiver: slots up to `taken` may be used again. True: ring.
  bool take(uint32_t taken) {
    own_.taken.store(taken, std::memory_order_release);
    fence();
    return peers_.wants_room.load(std::memory_order_relaxed) != 0 && sleeps();
  }
  // Says that we shall sleep. False if there is something to do: stay awake. After true, wait for the bell.
  // `taken`: slots we have read; `full_at`: we have more to send and wait for more than this to be taken.
  bool prepare_sleep(uint32_t taken, bool waits_for_room, uint32_t full_at) {
    own_.wants_room.store(waits_for_room ? 1 : 0, std::memory_order_relaxed);
    if ((own_.sleep.load(std::memory_order_relaxed) & 1) == 0) {
      own_.sleep.store(own_.sleep.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    }
    fence();
    const bool empty = peers_.sent.load(std::memory_order_acquire) == taken;
    const bool full = !waits_for_room || peers_.taken.load(std::memory_order_acquire) == full_at;
    if (empty && full) return true;
    awake();
    return false;
  }
  void awake() {
    const uint32_t sleep = own_.sleep.load(std::memory_order_relaxed);
    if (sleep & 1) own_.sleep.store(sleep + 1, std::memory_order_relaxed);
  }

 private:
  static void fence() {
    if constexpr (requires { Atomic::fence(); }) {
      Atomic::fence();
    } else {
      full_fence();
    }
  }
  bool sleeps() {
    const uint32_t sleep = peers_.sleep.load(std::memory_order_relaxed);
    // Once for each sleep: the bell goes on ringing until it is heard.
    if ((sleep & 1) == 0 || sleep == rung_) return false;
    rung_ = sleep;
    return true;
  }

  ShmControl<Atomic>& own_;
  const ShmControl<Atomic>& peers_;
  uint32_t rung_ = 0;
};

}  // namespace pscloud

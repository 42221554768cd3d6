#pragma once

#include <atomic>

namespace pscloud {

// No load or store before it is delayed beyond it, none after it is done before it.
inline void full_fence() {
#if defined(__SANITIZE_THREAD__)
  std::atomic<int> barrier{0};  // ThreadSanitizer knows no fences; this orders as much on the machines it runs on
  barrier.exchange(1, std::memory_order_seq_cst);
#else
  std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
}

}  // namespace pscloud

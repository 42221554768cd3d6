#pragma once

#include <algorithm>
#include <cstddef>

namespace pscloud {

inline constexpr size_t kCacheLine = 64;

// Asks for memory that will be used soon. Always inlined, or g++ 12 takes it to do nothing and drops the call.
// Of long pieces the first lines only: by then the processor has seen where it goes.
[[gnu::always_inline]] inline void ask_for(const void* memory, size_t bytes) {
  constexpr size_t kAheadBytesMax = 4 * kCacheLine;
  const auto* begin = static_cast<const std::byte*>(memory);
  for (size_t at = 0; at < std::min(bytes, kAheadBytesMax); at += kCacheLine) __builtin_prefetch(begin + at);
  __builtin_prefetch(begin + bytes - 1);  // often on a line of its own: rows are not aligned
}

}  // namespace pscloud

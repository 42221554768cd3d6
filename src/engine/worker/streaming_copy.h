#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace pscloud {

// Copies past the caches: the lines that are written are not read first, and what others have there stays. For arrays
// that are larger than the caches, where a memcpy of one part after the other cannot know.
inline void streaming_copy(std::byte* to, const std::byte* from, size_t size) {
#if defined(__SSE2__)
  constexpr size_t kStreamedLine = 64;
  const size_t head = -reinterpret_cast<uintptr_t>(to) % kStreamedLine;
  if (size < head + kStreamedLine) {
    std::memcpy(to, from, size);
    return;
  }
  std::memcpy(to, from, head);
  size_t at = head;
  for (; at + kStreamedLine <= size; at += kStreamedLine) {
    for (size_t i = 0; i < kStreamedLine; i += sizeof(__m128i)) {
      _mm_stream_si128(reinterpret_cast<__m128i*>(to + at + i),
                       _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + at + i)));
    }
  }
  std::memcpy(to + at, from + at, size - at);
  _mm_sfence();  // these stores are in no order otherwise
#else
  std::memcpy(to, from, size);
#endif
}

}  // namespace pscloud

#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <span>

#include "base/fence.h"

namespace pscloud {

// How a process reads rows that another one writes at the same time: each block of rows has a version in the same
// shared memory, odd while rows of the block are being written. Who finds the same even version before and after it
// has read has read rows that nobody wrote meanwhile.

// Blocks of about 16 KB: a copy of one seldom meets a write.
constexpr uint64_t rows_per_version(uint64_t width) { return std::max<uint64_t>(1, 4096 / width); }
constexpr uint64_t version_count(uint64_t rows, uint64_t width) {
  const uint64_t block = rows_per_version(width);
  return (rows + block - 1) / block;
}

// The side that writes: one thread of one process.
class RowVersionWriter {
 public:
  RowVersionWriter() = default;  // nobody reads
  RowVersionWriter(std::span<uint64_t> versions, uint64_t width)
      : versions_(versions), block_(rows_per_version(width)) {}

  // Before and after rows first..first+count are written.
  void begin(uint64_t first, uint64_t count) {
    if (versions_.empty()) return;
    step(first, count);
    full_fence();  // nobody sees a new value and still the old version
  }
  void end(uint64_t first, uint64_t count) {
    if (!versions_.empty()) step(first, count);
  }

 private:
  void step(uint64_t first, uint64_t count) {
    for (uint64_t i = first / block_; i * block_ < first + count; ++i) {
      std::atomic_ref version(versions_[i]);
      version.store(version.load(std::memory_order_relaxed) + 1, std::memory_order_release);
    }
  }

  std::span<uint64_t> versions_;
  uint64_t block_ = 1;
};

// The side that reads: the sum of some versions, or 0 while one of the blocks is being written. The same sum twice
// means that no row has changed in between: versions only grow. Everything read before this call was read before it
// looks, and everything after it after.
inline uint64_t version_of(std::span<const uint64_t> versions) {
  full_fence();
  uint64_t sum = 2;  // never 0
  for (const uint64_t& one : versions) {
    const uint64_t version = std::atomic_ref(const_cast<uint64_t&>(one)).load(std::memory_order_acquire);
    if (version & 1) return 0;
    sum += version;
  }
  return sum;
}

}  // namespace pscloud

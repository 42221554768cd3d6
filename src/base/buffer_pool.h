#pragma once

#include <map>
#include <memory>
#include <vector>

#include "base/bytes.h"
#include "base/mutex.h"

namespace pscloud {

// Memory for payloads, used again: fresh pages of the system cost more than the copy into them. Thread-safe; buffers
// may outlive the pool.
class BufferPool {
 public:
  // Keeps at most `idle_bytes_max` that nobody uses.
  explicit BufferPool(uint64_t idle_bytes_max = uint64_t{64} << 20);

  // `size` bytes, aligned to 64, not set to anything. Small ones come from the heap.
  Buffer take(size_t size);

 private:
  struct Shelf;
  const std::shared_ptr<Shelf> shelf_;
};

}  // namespace pscloud

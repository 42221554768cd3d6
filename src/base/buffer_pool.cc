#include "base/buffer_pool.h"

#include <bit>
#include <new>

namespace pscloud {
namespace {

constexpr size_t kAlignment = 64;
// Below it the heap is as good: it keeps such blocks itself.
constexpr size_t kPooledMin = 32 << 10;

struct Free {
  void operator()(std::byte* block) const { ::operator delete[](block, std::align_val_t(kAlignment)); }
};
using Block = std::unique_ptr<std::byte[], Free>;

Block new_block(size_t size) {
  return Block(static_cast<std::byte*>(::operator new[](size, std::align_val_t(kAlignment))));
}

}  // namespace

// The blocks nobody uses, by size.
struct BufferPool::Shelf {
  explicit Shelf(uint64_t max) : bytes_max(max) {}

  const uint64_t bytes_max;
  Mutex mutex;
  uint64_t bytes GUARDED_BY(mutex) = 0;
  std::map<size_t, std::vector<Block>> blocks GUARDED_BY(mutex);

  Block take(size_t size) {
    MutexLock lock(mutex);
    const auto found = blocks.find(size);
    if (found == blocks.end() || found->second.empty()) return nullptr;
    Block block = std::move(found->second.back());  // the one put back last: it is still in the cache
    found->second.pop_back();
    bytes -= size;
    return block;
  }
  void put(Block block, size_t size) {
    MutexLock lock(mutex);
    if (bytes + size > bytes_max) return;
    bytes += size;
    blocks[size].push_back(std::move(block));
  }
};

BufferPool::BufferPool(uint64_t idle_bytes_max) : shelf_(std::make_shared<Shelf>(idle_bytes_max)) {}

Buffer BufferPool::take(size_t size) {
  if (size < kPooledMin) return Buffer(size);
  // Powers of two, and a little more: most payloads are a power of two and a small head.
  const size_t capacity = std::bit_ceil(size - std::min(size, size_t{4096})) + 4096;
  Block block = shelf_->take(capacity);
  if (!block) block = new_block(capacity);
  const std::span<std::byte> memory(block.get(), size);
  std::shared_ptr<void> keeper(block.release(), [shelf = shelf_, capacity](void* raw) {
    shelf->put(Block(static_cast<std::byte*>(raw)), capacity);
  });
  return Buffer(memory, std::move(keeper));
}

}  // namespace pscloud

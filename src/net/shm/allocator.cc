#include "net/shm/allocator.h"

#include <iterator>

#include "base/check.h"

namespace pscloud {

std::optional<uint64_t> ShmAllocator::take(uint64_t size, uint64_t limit) {
  size = rounded(size);
  for (auto place = free_.begin(); place != free_.end() && place->first + size <= limit; ++place) {
    if (place->second < size) continue;
    const uint64_t offset = place->first;
    const uint64_t rest = place->second - size;
    free_.erase(place);
    if (rest > 0) free_[offset + size] = rest;
    used_ += size;
    return offset;
  }
  return std::nullopt;
}

void ShmAllocator::give_back(uint64_t offset, uint64_t size) {
  size = rounded(size);
  CHECK(used_ >= size);
  used_ -= size;
  auto next = free_.lower_bound(offset);
  CHECK(next == free_.end() || offset + size <= next->first, "given back twice");
  if (next != free_.end() && next->first == offset + size) {
    size += next->second;
    next = free_.erase(next);
  }
  if (next != free_.begin()) {
    const auto before = std::prev(next);
    CHECK(before->first + before->second <= offset, "given back twice");
    if (before->first + before->second == offset) {
      before->second += size;
      return;
    }
  }
  free_[offset] = size;
}

}  // namespace pscloud

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

namespace pscloud {

// Which parts of a segment are in use. Lowest addresses first, so that the same few pages are used again and stay in
// the cache. What it knows stands in private memory, where no peer can spoil it.
class ShmAllocator {
 public:
  ShmAllocator(uint64_t first, uint64_t last) { free_[first] = last - first; }

  // The offset of `size` bytes that end before `limit`, a multiple of 64; none if there is no such room.
  std::optional<uint64_t> take(uint64_t size, uint64_t limit = UINT64_MAX);
  // What take(size) gave.
  void give_back(uint64_t offset, uint64_t size);

  uint64_t used() const { return used_; }

 private:
  static constexpr uint64_t kAlignment = 64;
  static uint64_t rounded(uint64_t size) {
    return size == 0 ? kAlignment : (size + kAlignment - 1) / kAlignment * kAlignment;
  }

  std::map<uint64_t, uint64_t> free_;  // offset to size; no two touch
  uint64_t used_ = 0;
};

}  // namespace pscloud

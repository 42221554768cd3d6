#pragma once

#include <cstddef>

namespace pscloud {

// One piece of zeroed memory that begins on a cache line. From 2 MB on it is mapped: it begins on a huge page, asks for
// huge pages wherever it covers whole ones (a random row then costs one miss, not one and a walk through page tables),
// is zeroed by the kernel alone, and takes real memory only where it is touched.
class HugeMemory {
 public:
  static constexpr size_t kHugePage = size_t{2} << 20;

  HugeMemory() = default;
  explicit HugeMemory(size_t bytes) { grow(bytes); }
  HugeMemory(const HugeMemory&) = delete;
  HugeMemory& operator=(const HugeMemory&) = delete;
  ~HugeMemory();

  std::byte* data() const { return data_; }
  size_t size() const { return size_; }

  // Contents stay, what is added is zero. It may move, but what is mapped is never copied: the kernel changes the map.
  void grow(size_t bytes);

  // What stands there is not needed any more: the system gets it back, where it was mapped. `at`: of a whole page.
  void forget(size_t at, size_t bytes);

  // The size to ask for if more may follow: whole huge pages once it is mapped.
  static size_t whole_pages(size_t bytes) {
    return bytes < kHugePage ? bytes : (bytes + kHugePage - 1) / kHugePage * kHugePage;
  }

 private:
  void grow_mapped(size_t bytes);

  std::byte* data_ = nullptr;
  size_t size_ = 0;
  size_t mapped_ = 0;  // addresses we have; 0: from the heap
};

}  // namespace pscloud

#include "engine/table/huge_memory.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "base/check.h"

namespace pscloud {
namespace {

constexpr size_t kCacheLine = 64;

// `bytes` of addresses that begin on a huge page.
std::byte* map_aligned(size_t bytes) {
  constexpr size_t kSpare = HugeMemory::kHugePage;
  void* raw =
      ::mmap(nullptr, bytes + kSpare, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  CHECK(raw != MAP_FAILED, "no memory for {} bytes of a table", bytes);
  auto* begin = static_cast<std::byte*>(raw);
  const size_t before = (kSpare - reinterpret_cast<uintptr_t>(raw) % kSpare) % kSpare;
  if (before > 0) ::munmap(begin, before);
  ::munmap(begin + before + bytes, kSpare - before);
  return begin + before;
}

}  // namespace

HugeMemory::~HugeMemory() {
  if (mapped_ > 0) {
    ::munmap(data_, mapped_);
  } else {
    std::free(data_);
  }
}

void HugeMemory::grow(size_t bytes) {
  if (bytes <= size_) return;
  if (bytes >= kHugePage) return grow_mapped(bytes);
  auto* data =
      static_cast<std::byte*>(std::aligned_alloc(kCacheLine, (bytes + kCacheLine - 1) / kCacheLine * kCacheLine));
  CHECK(data != nullptr, "no memory for {} bytes of a table", bytes);
  if (size_ > 0) std::memcpy(data, data_, size_);
  std::memset(data + size_, 0, bytes - size_);
  std::free(data_);
  data_ = data;
  size_ = bytes;
}

void HugeMemory::forget(size_t at, size_t bytes) {
  if (mapped_ > 0) (void)::madvise(data_ + at, bytes, MADV_DONTNEED);
}

void HugeMemory::grow_mapped(size_t bytes) {
  const size_t needed = (bytes + kHugePage - 1) / kHugePage * kHugePage;
  const bool first = size_ == 0;
  if (needed > mapped_) {
    // What has grown once will grow again. Addresses cost nothing, moving costs a walk through the page tables.
    const size_t mapped = first ? needed : 2 * needed;
    std::byte* data = map_aligned(mapped);
    if (mapped_ > 0) {
      // Of one kind all over, or it cannot be moved in one piece. Both begin on a huge page, so that it moves by these.
      (void)::madvise(data_, mapped_, MADV_HUGEPAGE);
      void* moved = ::mremap(data_, mapped_, mapped, MREMAP_MAYMOVE | MREMAP_FIXED, data);
      CHECK(moved == data, "a table's memory could not be moved: error {}", errno);
    } else if (!first) {
      std::memcpy(data, data_, size_);
      std::free(data_);
    }
    data_ = data;
    mapped_ = mapped;
    // Not the last page of what may never grow: most of it might not be needed. An answer of no costs only speed.
    (void)::madvise(data_, first ? bytes / kHugePage * kHugePage : mapped_, MADV_HUGEPAGE);
  }
  size_ = bytes;
}

}  // namespace pscloud

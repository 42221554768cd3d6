#include "engine/table/huge_memory.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace pscloud {
namespace {

TEST(HugeMemory, KeepsItsContentsAndAddsZerosWhileItGrows) {
  HugeMemory memory;
  EXPECT_EQ(memory.size(), 0u);
  size_t filled = 0;
  // From the heap, to a first map, within it and to others.
  for (const size_t bytes : {size_t{1}, size_t{100}, size_t{5000}, HugeMemory::kHugePage - 1, HugeMemory::kHugePage,
                             HugeMemory::kHugePage + 1, size_t{9} << 20, size_t{10} << 20, size_t{40} << 20}) {
    memory.grow(bytes);
    ASSERT_EQ(memory.size(), bytes);
    ASSERT_EQ(reinterpret_cast<uintptr_t>(memory.data()) % 64, 0u);
    for (size_t i = 0; i < bytes; i += i < 10000 ? 1 : 997) {
      ASSERT_EQ(memory.data()[i], i < filled ? static_cast<std::byte>(i % 251) : std::byte{0}) << i << " of " << bytes;
    }
    for (size_t i = 0; i < bytes; ++i) memory.data()[i] = static_cast<std::byte>(i % 251);
    filled = bytes;
  }
  memory.grow(5);  // never smaller
  EXPECT_EQ(memory.size(), filled);
}

TEST(HugeMemory, LargeOnesBeginOnAHugePage) {
  const HugeMemory memory(3 << 20);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(memory.data()) % HugeMemory::kHugePage, 0u);
  EXPECT_EQ(memory.data()[(3 << 20) - 1], std::byte{0});
}

}  // namespace
}  // namespace pscloud

#include "net/shm/allocator.h"

#include <gtest/gtest.h>

#include <map>

#include "base/random.h"

namespace pscloud {
namespace {

TEST(ShmAllocator, GivesTheLowestPlaceAndTakesItBack) {
  ShmAllocator blocks(4096, 8192);
  EXPECT_EQ(blocks.take(100), 4096u);
  EXPECT_EQ(blocks.take(1), 4096u + 128);
  blocks.give_back(4096, 100);
  EXPECT_EQ(blocks.take(65), 4096u);
  EXPECT_EQ(blocks.take(4096), std::nullopt);
}

TEST(ShmAllocator, WhatIsGivenBackComesTogetherAgain) {
  ShmAllocator blocks(0, 1 << 20);
  Random random(5);
  std::map<uint64_t, uint64_t> used;  // offset to size
  for (int i = 0; i < 20000; ++i) {
    if (random.chance(0.55)) {
      const uint64_t size = random.below(20000);
      const auto offset = blocks.take(size);
      if (!offset) continue;
      EXPECT_EQ(*offset % 64, 0u);
      EXPECT_LE(*offset + size, 1u << 20);
      const auto next = used.lower_bound(*offset);
      EXPECT_TRUE(next == used.end() || *offset + size <= next->first);
      EXPECT_TRUE(next == used.begin() || std::prev(next)->first + std::prev(next)->second <= *offset);
      used[*offset] = size;
    } else if (!used.empty()) {
      auto one = used.lower_bound(random.below(1 << 20));
      if (one == used.end()) one = used.begin();
      blocks.give_back(one->first, one->second);
      used.erase(one);
    }
  }
  for (const auto& [offset, size] : used) blocks.give_back(offset, size);
  EXPECT_EQ(blocks.used(), 0u);
  EXPECT_EQ(blocks.take(1 << 20), 0u) << "all of it is one piece again";
}

}  // namespace
}  // namespace pscloud

#include "base/queue.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

namespace pscloud {
namespace {

using std::chrono::microseconds;
constexpr microseconds kNow{0};
constexpr microseconds kLong = std::chrono::seconds(60);  // never waited out unless the queue is broken

bool push(BoundedQueue<int>& queue, int item, uint64_t bytes, microseconds timeout = kNow) {
  return queue.push(item, bytes, timeout);
}

TEST(Queue, ItemsComeOutInOrder) {
  BoundedQueue<int> queue(100);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(push(queue, i, 10));
  EXPECT_EQ(queue.bytes(), 30);
  for (int i = 0; i < 3; ++i) {
    int item = -1;
    ASSERT_TRUE(queue.pop(item, kNow));
    EXPECT_EQ(item, i);
  }
  int item = -1;
  EXPECT_FALSE(queue.pop(item, kNow));
  EXPECT_EQ(queue.bytes(), 0);
}

TEST(Queue, AFullQueueTakesNoMoreAndLeavesTheItem) {
  BoundedQueue<std::unique_ptr<int>> queue(10);
  auto first = std::make_unique<int>(1);
  auto second = std::make_unique<int>(2);
  ASSERT_TRUE(queue.push(first, 8, kNow));
  EXPECT_FALSE(queue.push(second, 3, kNow));
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(*second, 2);
  EXPECT_TRUE(queue.push(second, 2, kNow));  // exactly full
}

TEST(Queue, AnEmptyQueueTakesAnItemHoweverLarge) {
  BoundedQueue<int> queue(10);
  EXPECT_TRUE(push(queue, 1, 1000));
  EXPECT_FALSE(push(queue, 2, 1));
  int item = 0;
  ASSERT_TRUE(queue.pop(item, kNow));
  EXPECT_TRUE(push(queue, 2, 1));
}

TEST(Queue, AfterCloseTheItemsLeftStillCome) {
  BoundedQueue<int> queue(10);
  ASSERT_TRUE(push(queue, 1, 1));
  queue.close();
  EXPECT_TRUE(queue.closed());
  EXPECT_FALSE(push(queue, 2, 1, kLong));
  int item = 0;
  EXPECT_TRUE(queue.pop(item, kLong));
  EXPECT_EQ(item, 1);
  EXPECT_FALSE(queue.pop(item, kLong));
}

TEST(Queue, CloseWakesThoseThatWait) {
  BoundedQueue<int> empty(1);
  BoundedQueue<int> full(1);
  ASSERT_TRUE(push(full, 0, 1));
  std::jthread reader([&] {
    int item = 0;
    EXPECT_FALSE(empty.pop(item, kLong));
  });
  std::jthread writer([&] { EXPECT_FALSE(push(full, 1, 1, kLong)); });
  empty.close();
  full.close();
}

TEST(Queue, ManyThreadsLoseAndRepeatNothing) {
  constexpr int kEach = 5000;
  BoundedQueue<int> queue(64);
  std::vector<int> seen(2 * kEach);
  {
    std::vector<std::jthread> readers;
    std::vector<std::vector<int>> got(2);
    {
      std::vector<std::jthread> writers;
      for (int w = 0; w < 2; ++w) {
        writers.emplace_back([&, w] {
          for (int i = 0; i < kEach; ++i) ASSERT_TRUE(push(queue, w * kEach + i, 1 + i % 7, kLong));
        });
      }
      for (auto& mine : got) {
        readers.emplace_back([&] {
          for (int item = 0; queue.pop(item, kLong);) mine.push_back(item);
        });
      }
    }
    queue.close();
    readers.clear();
    for (const auto& mine : got) {
      for (const int item : mine) ++seen[item];
    }
  }
  EXPECT_EQ(seen, std::vector<int>(2 * kEach, 1));
}

}  // namespace
}  // namespace pscloud

#include "base/buffer_pool.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>

namespace pscloud {
namespace {

TEST(BufferPool, GivesTheSameMemoryAgain) {
  BufferPool pool(16 << 20);
  const std::byte* first = pool.take(1 << 20).data();
  EXPECT_EQ(pool.take((1 << 20) - 500).data(), first);
  EXPECT_EQ(pool.take((1 << 20) + 100).data(), first) << "a head fits too";
}

TEST(BufferPool, BuffersInUseAreApart) {
  BufferPool pool(16 << 20);
  Buffer a = pool.take(100'000);
  Buffer b = pool.take(100'000);
  EXPECT_TRUE(a.data() + a.size() <= b.data() || b.data() + b.size() <= a.data());
  EXPECT_EQ(a.size(), 100'000u);
  for (const Buffer* each : {&a, &b}) EXPECT_EQ(reinterpret_cast<uintptr_t>(each->data()) % 64, 0u);
}

TEST(BufferPool, SmallAndEmptyBuffersWork) {
  BufferPool pool(0);
  for (const size_t size : {0, 1, 4095, 4096, 4097, 32768, 69632, 16 << 20}) EXPECT_EQ(pool.take(size).size(), size);
}

TEST(BufferPool, BuffersMayOutliveIt) {
  auto pool = std::make_unique<BufferPool>(16 << 20);
  Buffer buffer = pool->take(1 << 20);
  pool.reset();
  std::memset(buffer.data(), 1, buffer.size());
}

TEST(BufferPool, ServesManyThreads) {
  BufferPool pool(4 << 20);
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&pool, t] {
      for (int i = 0; i < 300; ++i) {
        Buffer buffer = pool.take(64 << 10);
        std::memset(buffer.data(), t, buffer.size());
        for (const std::byte byte : buffer.span()) ASSERT_EQ(byte, static_cast<std::byte>(t));
      }
    });
  }
}

}  // namespace
}  // namespace pscloud

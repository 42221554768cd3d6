#include "cli/bench/machine_limits.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include "base/check.h"
#include "base/random.h"
#include "base/vector_clones.h"

namespace pscloud {
namespace {

using SteadyClock = std::chrono::steady_clock;

double ms_between(SteadyClock::time_point start, SteadyClock::time_point end) {
  return std::chrono::duration<double, std::milli>(end - start).count();
}

template <class Work>
double time_ms(Work&& work) {
  const auto start = SteadyClock::now();
  work();
  return ms_between(start, SteadyClock::now());
}

// The compiler may not leave out what made `value`.
template <class T>
void keep(const T& value) {
  asm volatile("" : : "g"(&value) : "memory");
}

void* map(size_t bytes) {
  void* data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(data != MAP_FAILED);
  return data;
}

// In the widest vectors that the processor has, as the server adds.
PSCLOUD_VECTOR_CLONES
void add(float* __restrict target, const float* __restrict source, size_t count) {
  for (size_t i = 0; i < count; ++i) target[i] += source[i];
  keep(target);
}

// Two threads that are awake begin at once: what a thread costs to start is not the memory's limit.
double add_on_two(std::span<float> target, std::span<const float> source) {
  const size_t half = source.size() / 2 / 16 * 16;
  std::atomic<int> here = 0;
  std::array<SteadyClock::time_point, 2> starts, ends;
  const auto part = [&](size_t which, size_t first, size_t count) {
    for (++here; here < 2;) std::this_thread::yield();
    starts[which] = SteadyClock::now();
    add(target.data() + first, source.data() + first, count);
    ends[which] = SteadyClock::now();
  };
  {
    const std::jthread second([&] { part(1, half, source.size() - half); });
    part(0, 0, half);
  }
  return ms_between(std::ranges::min(starts), std::ranges::max(ends));
}

constexpr size_t kLineFloats = 64 / sizeof(float);

}  // namespace

LimitBuffer::LimitBuffer(size_t bytes) : data_(map(std::max<size_t>(bytes, 1))), size_(bytes) {
  ::madvise(data_, size_, MADV_HUGEPAGE);  // without it, usual pages
  std::ranges::fill(floats(), 1.0f);
#if defined(MADV_COLLAPSE)
  ::madvise(data_, size_, MADV_COLLAPSE);  // where there was no huge page at once
#endif
}

LimitBuffer::~LimitBuffer() { ::munmap(data_, std::max<size_t>(size_, 1)); }

double measure_add_ms(std::span<float> target, std::span<const float> source, int threads) {
  CHECK(target.size() >= source.size());
  if (threads > 1) return add_on_two(target, source);
  return time_ms([&] { add(target.data(), source.data(), source.size()); });
}

double measure_copy_ms(std::span<float> target, std::span<const float> source) {
  CHECK(target.size() >= source.size());
  return time_ms([&] {
    std::memcpy(target.data(), source.data(), source.size_bytes());
    keep(target);
  });
}

double measure_read_ms(std::span<const float> source) {
  const auto* words = reinterpret_cast<const uint32_t*>(source.data());
  return time_ms([&] {
    uint32_t sum = 0;
    for (size_t i = 0; i < source.size(); ++i) sum += words[i];
    keep(sum);
  });
}

double measure_fresh_fill_ms(size_t bytes) {
  void* data = map(bytes);
  ::madvise(data, bytes, MADV_NOHUGEPAGE);
  const double ms = time_ms([&] {
    std::memset(data, 1, bytes);
    keep(data);
  });
  ::munmap(data, bytes);
  return ms;
}

double measure_random_line_ns(std::span<float> memory, size_t lines, uint64_t seed) {
  const size_t lines_there = memory.size() / kLineFloats;
  if (lines_there == 0 || lines == 0) return 0;
  Random random(seed);
  std::vector<uint32_t> places(lines);
  for (uint32_t& place : places) place = static_cast<uint32_t>(random.below(std::min<size_t>(lines_there, UINT32_MAX)));
  const double ms = time_ms([&] {
    for (const uint32_t place : places) memory[place * kLineFloats] += 1.0f;
    keep(memory);
  });
  return ms * 1e6 / static_cast<double>(lines);
}

bool all_equal(std::span<const float> values, float expected) {
  // No early end: the loop is then one of vectors, and nearly always goes to the end anyway.
  uint32_t wrong = 0;
  for (const float value : values) wrong |= static_cast<uint32_t>(value != expected);
  return wrong == 0;
}

}  // namespace pscloud

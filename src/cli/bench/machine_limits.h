#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace pscloud {

// What the memory of this machine can do, measured by loops that do nothing else: no program that does the same work
// can be faster. Benchmarks measure them between their own rounds, so that noise hits both.

// Memory that is there (touched) and lies in huge pages where the system lends them.
class LimitBuffer {
 public:
  explicit LimitBuffer(size_t bytes);
  ~LimitBuffer();
  LimitBuffer(const LimitBuffer&) = delete;
  LimitBuffer& operator=(const LimitBuffer&) = delete;

  std::span<std::byte> bytes() { return {static_cast<std::byte*>(data_), size_}; }
  std::span<float> floats() { return {static_cast<float*>(data_), size_ / sizeof(float)}; }

 private:
  void* data_;
  size_t size_;
};

// Milliseconds of target[i] += source[i], on 1 or 2 threads.
double measure_add_ms(std::span<float> target, std::span<const float> source, int threads);
double measure_copy_ms(std::span<float> target, std::span<const float> source);
double measure_read_ms(std::span<const float> source);
// Of writing to so much memory that the system has just given, in pages of the usual size.
double measure_fresh_fill_ms(size_t bytes);
// Nanoseconds of reading and changing a line of 64 bytes, each at a random place in `memory`.
double measure_random_line_ns(std::span<float> memory, size_t lines, uint64_t seed);

// True if all of `values` are `expected`.
bool all_equal(std::span<const float> values, float expected);

}  // namespace pscloud

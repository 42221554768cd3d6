#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "engine/table/huge_memory.h"
#include "pscloud/types.h"

namespace pscloud {

// Rows of a sparse table, numbered from 0 in the order they were made. Each is its key and `floats` floats.
// The key stands right before the floats, so that a look-up that checks it brings them too; but floats that fill whole
// cache lines have memory of their own and begin on one: together with a key they would touch one line more.
class SparseRows {
 public:
  explicit SparseRows(size_t floats);

  uint64_t size() const { return size_; }
  Key key(uint32_t row) const {
    Key key;  // rows of an odd number of floats are not aligned for it
    std::memcpy(&key, key_address(row), sizeof key);
    return key;
  }
  float* floats(uint32_t row) { return reinterpret_cast<float*>(float_memory_ + row * float_step_); }
  const float* floats(uint32_t row) const { return reinterpret_cast<const float*>(float_memory_ + row * float_step_); }
  // To prefetch. Here, in a function of its own, a prefetch would be lost: g++ 12 takes such a function to do nothing.
  const std::byte* key_address(uint32_t row) const { return key_memory_ + row * key_step_; }

  bool key_is_beside() const { return !apart(); }

  // Room for `rows` in all. Before append(). Addresses given before are void.
  void reserve(uint64_t rows);
  // A row for `key`; its floats are zero.
  uint32_t append(Key key);

  uint64_t bytes() const { return bytes_for(capacity_); }
  // What it will have after reserve(rows).
  uint64_t bytes_after(uint64_t rows) const { return bytes_for(capacity_for(rows)); }

 private:
  bool apart() const { return float_step_ != key_step_; }
  uint64_t capacity_for(uint64_t rows) const;
  uint64_t bytes_for(uint64_t capacity) const;

  const size_t float_step_;
  const size_t key_step_;
  uint64_t size_ = 0;
  uint64_t capacity_ = 0;
  // Of row 0. 64-bit products: a table may have more than 4 GB.
  std::byte* key_memory_ = nullptr;
  std::byte* float_memory_ = nullptr;
  HugeMemory rows_;
  HugeMemory keys_;  // if they stand apart
};

}  // namespace pscloud

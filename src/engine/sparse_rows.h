#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "pscloud/types.h"

namespace pscloud {

// Rows of a sparse table, numbered from 0 in the order they were made. Each is its key, then `floats` floats: one piece
// of memory, so a look-up that checks the key brings the values too. Chunks of about 1 MB never move; only the first
// one, while it is smaller, grows by doubling.
class SparseRows {
 public:
  explicit SparseRows(size_t floats);

  uint64_t size() const { return size_; }
  Key key(uint32_t row) const {
    Key key;  // rows of an odd number of floats are not aligned for it
    std::memcpy(&key, at(row), sizeof key);
    return key;
  }
  float* floats(uint32_t row) { return reinterpret_cast<float*>(at(row) + sizeof(Key)); }
  const float* floats(uint32_t row) const { return reinterpret_cast<const float*>(at(row) + sizeof(Key)); }
  // To prefetch. Here, in a function of its own, a prefetch would be lost: g++ 12 takes such a function to do nothing.
  const void* address(uint32_t row) const { return at(row); }

  // Room for `rows` in all. Before append().
  void reserve(uint64_t rows);
  // A row for `key`; its floats are not set.
  uint32_t append(Key key);

  uint64_t bytes() const { return bytes_for(capacity_); }
  // What it will have after reserve(rows).
  uint64_t bytes_after(uint64_t rows) const { return bytes_for(capacity_for(rows)); }

 private:
  std::byte* at(uint32_t row) const { return chunks_[row >> chunk_shift_].get() + (row & chunk_mask_) * row_bytes_; }
  uint64_t capacity_for(uint64_t rows) const;
  uint64_t bytes_for(uint64_t capacity) const;

  const size_t row_bytes_;
  const int chunk_shift_;  // a chunk has 2^chunk_shift_ rows
  const uint32_t chunk_mask_;
  uint64_t size_ = 0;
  uint64_t capacity_ = 0;
  std::vector<std::unique_ptr<std::byte[]>> chunks_;
};

}  // namespace pscloud

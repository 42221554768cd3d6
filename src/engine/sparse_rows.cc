#include "engine/sparse_rows.h"

#include <algorithm>
#include <bit>

namespace pscloud {
namespace {

constexpr size_t kChunkBytes = 1 << 20;
constexpr uint64_t kRowsMin = 16;

int shift_for(size_t row_bytes) { return std::bit_width(std::max<size_t>(kChunkBytes / row_bytes, 1)) - 1; }

}  // namespace

SparseRows::SparseRows(size_t floats)
    : row_bytes_(sizeof(Key) + floats * sizeof(float)),
      chunk_shift_(shift_for(row_bytes_)),
      chunk_mask_((uint32_t{1} << chunk_shift_) - 1) {}

void SparseRows::reserve(uint64_t rows) {
  const uint64_t capacity = capacity_for(rows);
  if (capacity == capacity_) return;
  const uint64_t chunk_rows = uint64_t{1} << chunk_shift_;
  if (capacity_ < chunk_rows) {
    auto first = std::make_unique_for_overwrite<std::byte[]>(std::min(capacity, chunk_rows) * row_bytes_);
    if (size_ > 0) std::memcpy(first.get(), chunks_[0].get(), size_ * row_bytes_);
    chunks_.resize(1);
    chunks_[0] = std::move(first);
  }
  while (chunks_.size() * chunk_rows < capacity)
    chunks_.push_back(std::make_unique_for_overwrite<std::byte[]>(chunk_rows * row_bytes_));
  capacity_ = capacity;
}

uint32_t SparseRows::append(Key key) {
  const auto row = static_cast<uint32_t>(size_++);
  std::memcpy(at(row), &key, sizeof key);
  return row;
}

uint64_t SparseRows::capacity_for(uint64_t rows) const {
  if (rows <= capacity_) return capacity_;
  const uint64_t chunk_rows = uint64_t{1} << chunk_shift_;
  if (rows <= chunk_rows) return std::min(chunk_rows, std::bit_ceil(std::max(rows, kRowsMin)));
  return (rows + chunk_rows - 1) / chunk_rows * chunk_rows;
}

uint64_t SparseRows::bytes_for(uint64_t capacity) const {
  const uint64_t chunk_rows = uint64_t{1} << chunk_shift_;
  const uint64_t chunks = (capacity + chunk_rows - 1) / chunk_rows;
  // The list of chunks grows by doubling: count it at its largest.
  return capacity * row_bytes_ + 2 * chunks * sizeof(chunks_[0]);
}

}  // namespace pscloud

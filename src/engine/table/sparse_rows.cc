#include "engine/table/sparse_rows.h"

#include <algorithm>
#include <bit>

namespace pscloud {
namespace {

constexpr size_t kLine = 64;
constexpr uint64_t kRowsMin = 16;

bool whole_lines(size_t floats) { return floats * sizeof(float) % kLine == 0; }

}  // namespace

SparseRows::SparseRows(size_t floats)
    : float_step_(floats * sizeof(float) + (whole_lines(floats) ? 0 : sizeof(Key))),
      key_step_(whole_lines(floats) ? sizeof(Key) : float_step_) {}

void SparseRows::reserve(uint64_t rows) {
  const uint64_t capacity = capacity_for(rows);
  if (capacity == capacity_) return;
  rows_.grow(HugeMemory::whole_pages(capacity * float_step_));
  if (apart()) keys_.grow(HugeMemory::whole_pages(capacity * key_step_));
  key_memory_ = apart() ? keys_.data() : rows_.data();
  float_memory_ = apart() ? rows_.data() : rows_.data() + sizeof(Key);
  capacity_ = capacity;
}

uint32_t SparseRows::append(Key key) {
  const auto row = static_cast<uint32_t>(size_++);
  std::memcpy(key_memory_ + row * key_step_, &key, sizeof key);
  return row;
}

// By doubling while it is small, then by huge pages.
uint64_t SparseRows::capacity_for(uint64_t rows) const {
  if (rows <= capacity_) return capacity_;
  const uint64_t small = std::bit_ceil(std::max(rows, kRowsMin));
  if (small * float_step_ < HugeMemory::kHugePage) return small;
  return HugeMemory::whole_pages(std::max<uint64_t>(rows * float_step_, HugeMemory::kHugePage)) / float_step_;
}

uint64_t SparseRows::bytes_for(uint64_t capacity) const {
  return HugeMemory::whole_pages(capacity * float_step_) +
         (apart() ? HugeMemory::whole_pages(capacity * key_step_) : 0);
}

}  // namespace pscloud

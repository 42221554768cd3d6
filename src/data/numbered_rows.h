#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "data/row_block.h"
#include "pscloud/error.h"

namespace pscloud {

// Examples whose keys are numbered 0, 1, 2, ... in increasing order, so that parameters and gradients are plain arrays
// while they are worked on. All in one piece of memory, which is as a block cache has them: docs/block-cache.md. Keeps
// its memory from one use to the next. One thread.
class NumberedRows {
 public:
  // Copies `rows`, whose features have these `columns` among `keys`.
  void assign(const RowSlice& rows, std::span<const Key> keys, std::span<const uint32_t> columns);

  Bytes bytes() const { return Bytes(memory_).first(size_); }
  // As bytes() gave them: who reads them puts them at the front of memory(), then says how many they are. kCorrupt if
  // they are no such rows.
  std::vector<std::byte>& memory() { return memory_; }
  Result<> decode(size_t size);

  size_t size() const { return rows_.rows(); }
  const RowSlice& rows() const { return rows_; }                  // without keys
  std::span<const Key> keys() const { return keys_; }             // strictly increasing
  std::span<const uint32_t> columns() const { return columns_; }  // of each feature: its key's number

 private:
  struct Head;
  size_t set_views(const Head& head);

  std::vector<std::byte> memory_;
  size_t size_ = 0;  // of it in use
  RowSlice rows_;
  std::span<const Key> keys_;
  std::span<const uint32_t> columns_;
};

}  // namespace pscloud

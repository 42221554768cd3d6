#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "engine/worker/channel.h"
#include "pscloud/table.h"

namespace pscloud {

// One part of a request and the owner it goes to. `sink` takes in the answer.
struct Slice {
  uint32_t owner = 0;
  Part part;
  std::function<void(const Part::Answer&)> sink;

  // Where its values still are: `source` itself, or those of its rows at `positions`.
  std::span<const float> source = {};
  std::vector<uint32_t> positions = {};

  size_t value_bytes() const { return source.empty() ? 0 : size_t{part.count} * part.spec->width * sizeof(float); }
  // Copies them to `buffer`, which has value_bytes(): from now on the caller's array may be used again.
  void load(Buffer buffer);
};

// Cuts a request by the owners of its keys and into parts of about a mebibyte, so that adding and transferring
// overlap and a small request never waits long behind a large one. Values stay where they are until load(); `out` is
// written by the sinks. `values` is empty for a pull, `out` for a push; sizes have been checked.
std::vector<Slice> slice_keys(FrameType type, TableId table, const std::shared_ptr<const TableSpec>& spec,
                              uint32_t owners, std::span<const Key> keys, std::span<const float> values,
                              std::span<float> out);

// Rows to be set: as many floats of each key; `keys` in any order, which those of one owner keep.
std::vector<Slice> slice_rows_to_set(TableId table, const TableSpec& spec, uint32_t owners, std::span<const Key> keys,
                                     std::span<const float> floats, ScanKind kind);

// The same for rows first, first+1, ... of a dense table.
std::vector<Slice> slice_rows(FrameType type, TableId table, const std::shared_ptr<const TableSpec>& spec,
                              uint32_t owners, uint64_t first, uint64_t rows, std::span<const float> values,
                              std::span<float> out);

}  // namespace pscloud

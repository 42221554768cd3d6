#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "pscloud/types.h"

namespace pscloud {

// Examples: a label and some features each, one row after the other.
struct RowBlock {
  std::vector<float> labels;  // as written; what they mean is for the loss to say
  std::vector<size_t> ends;   // of the features of each row; they begin where those of the row before end
  std::vector<Key> keys;
  std::vector<float> values;     // of each feature; empty: all are 1
  std::vector<uint16_t> groups;  // of each feature; empty: they are not in groups

  size_t rows() const { return labels.size(); }
  size_t begin_of(size_t row) const { return row == 0 ? 0 : ends[row - 1]; }
  std::span<const Key> keys_of(size_t row) const {
    return std::span(keys).subspan(begin_of(row), ends[row] - begin_of(row));
  }
  std::span<const float> values_of(size_t row) const {
    return values.empty() ? std::span<const float>() : std::span(values).subspan(begin_of(row), keys_of(row).size());
  }

  // The features that came after the last row are those of a new one.
  void end_row(float label) {
    labels.push_back(label);
    ends.push_back(keys.size());
  }
  // They are dropped.
  void drop_unended() {
    const size_t size = ends.empty() ? 0 : ends.back();
    keys.resize(size);
    if (values.size() > size) values.resize(size);
    if (groups.size() > size) groups.resize(size);
  }
  // The first rows are dropped; what follows moves to the front.
  void drop_front(size_t count) {
    if (count == 0) return;
    const size_t features = begin_of(count);
    const auto drop = [](auto& all, size_t first) {
      all.erase(all.begin(), all.begin() + static_cast<ptrdiff_t>(std::min(first, all.size())));
    };
    drop(labels, count);
    drop(ends, count);
    drop(keys, features);
    drop(values, features);
    drop(groups, features);
    for (size_t& end : ends) end -= features;
  }
  // Empty again; the memory is kept.
  void clear() {
    labels.clear();
    ends.clear();
    keys.clear();
    values.clear();
    groups.clear();
  }
};

// Some rows of a block, one after the other.
struct RowSlice {
  std::span<const float> labels;
  std::span<const size_t> ends;      // of each row, in the block
  size_t first = 0;                  // where the features of the first row begin in the block
  std::span<const Key> keys;         // of all rows
  std::span<const float> values;     // empty: all are 1
  std::span<const uint16_t> groups;  // empty: they are not in groups

  size_t rows() const { return labels.size(); }
};

inline RowSlice slice_of(const RowBlock& block, size_t first_row, size_t rows) {
  const size_t first = block.begin_of(first_row);
  const size_t count = block.begin_of(first_row + rows) - first;
  const auto part = [&](const auto& all) {
    return all.empty() ? std::span(all) : std::span(all).subspan(first, count);
  };
  return {.labels = std::span(block.labels).subspan(first_row, rows),
          .ends = std::span(block.ends).subspan(first_row, rows),
          .first = first,
          .keys = part(block.keys),
          .values = part(block.values),
          .groups = part(block.groups)};
}

}  // namespace pscloud

#pragma once

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
  // Empty again; the memory is kept.
  void clear() {
    labels.clear();
    ends.clear();
    keys.clear();
    values.clear();
    groups.clear();
  }
};

}  // namespace pscloud

#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "pscloud/table.h"

namespace pscloud {

struct RowParts {
  Key key;
  const float* values;
  std::span<const float> state;
};

// `count` rows from `first` on, which `parts_of` gives by their numbers.
template <class PartsOf>
ScannedRows scan_rows(uint64_t first, uint64_t count, ScanKind kind, size_t width, PartsOf parts_of) {
  ScannedRows scanned;
  scanned.next = first + count;
  if (kind != ScanKind::kCount && count > 0) {
    scanned.keys.reserve(count);
    scanned.floats.reserve(count * (width + (kind == ScanKind::kState ? parts_of(first).state.size() : 0)));
  }
  for (uint64_t row = first; row < first + count; ++row) {
    const RowParts parts = parts_of(row);
    const float* const end = parts.values + width;
    const bool nonzero = std::any_of(parts.values, end, [](float value) { return value != 0; });
    scanned.nonzero += nonzero;
    if (kind == ScanKind::kCount || (kind == ScanKind::kNonzero && !nonzero)) continue;
    scanned.keys.push_back(parts.key);
    scanned.floats.insert(scanned.floats.end(), parts.values, end);
    if (kind == ScanKind::kState) {
      scanned.floats.insert(scanned.floats.end(), parts.state.begin(), parts.state.end());
    }
  }
  return scanned;
}

}  // namespace pscloud

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/table/row_finder.h"
#include "engine/table/sparse_rows.h"
#include "pscloud/updater.h"

namespace pscloud {

// Applies an updater to rows that lie anywhere. Narrow rows are brought together first, so that the updater's loop runs
// over a whole group of them in vectors.
class RowUpdate {
 public:
  static constexpr size_t kGroup = RowFinder::kGroup;

  RowUpdate(const Updater& updater, size_t width, size_t state_width);

  // At most kGroup rows, all there. `pushed` has their new floats; the values afterwards go to `out` if it is not null.
  // Rows `ahead`, no more than these, will be next: their memory is asked for meanwhile.
  void apply(SparseRows& table, std::span<const uint32_t> rows, std::span<const uint32_t> ahead, const float* pushed,
             float* out);
  // Those that the finder has given last: it asks ahead.
  void apply(SparseRows& table, RowFinder& finder, std::span<const uint32_t> rows, const float* pushed, float* out);

 private:
  // ask_ahead(i, floats) for row i; how many floats a row has may be known at compile time.
  template <class AskAhead>
  void apply_rows(SparseRows& table, std::span<const uint32_t> rows, const float* pushed, float* out,
                  const AskAhead& ask_ahead);
  template <size_t kWidth, size_t kState, class AskAhead>
  void apply_gathered(SparseRows& table, std::span<const uint32_t> rows, const float* pushed, float* out,
                      const AskAhead& ask_ahead);

  const Updater& updater_;
  const size_t width_;
  const size_t state_width_;
  std::vector<float> values_;
  std::vector<float> states_;
};

}  // namespace pscloud

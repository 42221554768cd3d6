#include "engine/table/row_update.h"

#include <algorithm>

#include "engine/table/prefetch.h"

namespace pscloud {
namespace {

// Wider rows fill the updater's loop on their own: bringing them together would only copy.
constexpr size_t kGatherWidthMax = 8;
constexpr size_t kAny = SIZE_MAX;

}  // namespace

RowUpdate::RowUpdate(const Updater& updater, size_t width, size_t state_width)
    : updater_(updater), width_(width), state_width_(state_width) {
  if (width > kGatherWidthMax) return;
  values_.resize(kGroup * width);
  states_.resize(kGroup * state_width);
}

void RowUpdate::apply(SparseRows& table, std::span<const uint32_t> rows, std::span<const uint32_t> ahead,
                      const float* pushed, float* out) {
  // Always inlined, as ask_for() is: a function that only asks for memory seems to do nothing.
  apply_rows(
      table, rows, pushed, out, [&](size_t i, size_t floats) __attribute__((always_inline)) {
        if (i < ahead.size()) ask_for(table.floats(ahead[i]), floats * sizeof(float));
      });
}

void RowUpdate::apply(SparseRows& table, RowFinder& finder, std::span<const uint32_t> rows, const float* pushed,
                      float* out) {
  apply_rows(table, rows, pushed, out, [&](size_t, size_t) { finder.ask_ahead(); });
}

template <class AskAhead>
void RowUpdate::apply_rows(SparseRows& table, std::span<const uint32_t> rows, const float* pushed, float* out,
                           const AskAhead& ask_ahead) {
  if (width_ == 1) {
    // The built-in updaters: copies of a length that is known at compile time.
    switch (state_width_) {
      case 0: return apply_gathered<1, 0>(table, rows, pushed, out, ask_ahead);
      case 1: return apply_gathered<1, 1>(table, rows, pushed, out, ask_ahead);
      case 2: return apply_gathered<1, 2>(table, rows, pushed, out, ask_ahead);
      default: break;
    }
  }
  if (width_ <= kGatherWidthMax) return apply_gathered<kAny, kAny>(table, rows, pushed, out, ask_ahead);
  for (size_t i = 0; i < rows.size(); ++i) {
    ask_ahead(i, width_ + state_width_);
    float* floats = table.floats(rows[i]);
    updater_.update_rows(floats, floats + width_, pushed + i * width_, 1, width_);
    if (out != nullptr) std::copy_n(floats, width_, out + i * width_);
  }
}

template <size_t kWidth, size_t kState, class AskAhead>
void RowUpdate::apply_gathered(SparseRows& table, std::span<const uint32_t> rows, const float* pushed, float* out,
                               const AskAhead& ask_ahead) {
  const size_t width = kWidth == kAny ? width_ : kWidth;
  const size_t state_width = kState == kAny ? state_width_ : kState;
  float* values = out != nullptr ? out : values_.data();
  float* states = states_.data();
  for (size_t i = 0; i < rows.size(); ++i) {
    ask_ahead(i, width + state_width);
    const float* floats = table.floats(rows[i]);
    std::copy_n(floats, width, values + i * width);
    std::copy_n(floats + width, state_width, states + i * state_width);
  }
  updater_.update_rows(values, states, pushed, rows.size(), width);
  for (size_t i = 0; i < rows.size(); ++i) {
    float* floats = table.floats(rows[i]);
    std::copy_n(values + i * width, width, floats);
    std::copy_n(states + i * state_width, state_width, floats + width);
  }
}

}  // namespace pscloud

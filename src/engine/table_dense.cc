#include "engine/table_dense.h"

#include <cstring>

#include "engine/table_check.h"

namespace pscloud {

DenseTable::DenseTable(const TableSpec& spec, std::unique_ptr<Updater> updater, uint64_t first_row, uint64_t row_count)
    : spec_(spec),
      place_("table " + spec.name),
      updater_(std::move(updater)),
      first_row_(first_row),
      row_count_(row_count),
      state_width_(updater_->state_width(spec.width)),
      values_(row_count * spec.width),
      states_(row_count * state_width_) {
  if (spec_.initial.low == 0 && spec_.initial.high == 0) return;
  const std::span<float> all(values_);
  for (uint64_t row = 0; row < row_count; ++row)
    fill_initial(spec_.initial, first_row + row, all.subspan(row * spec_.width, spec_.width));
}

Result<> DenseTable::push(std::span<const Key> keys, std::span<const float> values) {
  TRY(prepare_push(keys, values));
  // Neighbours in one go: the lists of a dense table often have long runs.
  for (size_t begin = 0; begin < keys.size();) {
    size_t end = begin + 1;
    while (end < keys.size() && keys[end] == keys[end - 1] + 1) ++end;
    update_run(keys[begin], values.data() + begin * spec_.width, end - begin);
    begin = end;
  }
  return {};
}

Result<> DenseTable::pull(std::span<const Key> keys, std::span<float> out) const {
  TRY(check_rows(keys, out.size()).at(place_));
  for (size_t i = 0; i < keys.size(); ++i) {
    std::memcpy(out.data() + i * spec_.width, values_.data() + (keys[i] - first_row_) * spec_.width,
                spec_.width * sizeof(float));
  }
  return {};
}

Result<> DenseTable::push_range(uint64_t first, std::span<const float> values) {
  TRY(prepare_push_range(first, values));
  update_run(first, values.data(), values.size() / spec_.width);
  return {};
}

Result<> DenseTable::pull_range(uint64_t first, std::span<float> out) const {
  TRY(check_range(first, out.size()).at(place_));
  if (!out.empty()) std::memcpy(out.data(), values_.data() + (first - first_row_) * spec_.width, out.size_bytes());
  return {};
}

Result<> DenseTable::prepare_push(std::span<const Key> keys, std::span<const float> values) {
  TRY(check_rows(keys, values.size()).at(place_));
  return check_values(0, keys, values).at(place_);
}

Result<> DenseTable::prepare_push_range(uint64_t first, std::span<const float> values) {
  TRY(check_range(first, values.size()).at(place_));
  return check_values(first, {}, values).at(place_);
}

uint64_t DenseTable::bytes() const { return sizeof *this + (values_.capacity() + states_.capacity()) * sizeof(float); }

Result<> DenseTable::check_rows(std::span<const Key> keys, size_t floats) const {
  TRY(check_float_count(keys.size(), spec_.width, floats));
  TRY(check_keys_increase(keys));
  if (keys.empty()) return {};
  const auto is_here = [&](Key key) { return key >= first_row_ && key - first_row_ < row_count_; };
  if (is_here(keys.front()) && is_here(keys.back())) return {};  // sorted, so the ends tell
  return invalid("row {} is not here: this owner holds rows {} to {} (exclusive) of {}",
                 is_here(keys.front()) ? keys.back() : keys.front(), first_row_, first_row_ + row_count_, spec_.rows);
}

Result<> DenseTable::check_range(uint64_t first, size_t floats) const {
  if (floats % spec_.width != 0) return invalid("{} floats are not whole rows of width {}", floats, spec_.width);
  const uint64_t count = floats / spec_.width;
  // Written so that no sum can overflow.
  if (first >= first_row_ && first - first_row_ <= row_count_ && count <= row_count_ - (first - first_row_)) return {};
  return invalid("{} rows from {} are not here: this owner holds rows {} to {} (exclusive) of {}", count, first,
                 first_row_, first_row_ + row_count_, spec_.rows);
}

// `keys` empty: rows from `first` on.
Result<> DenseTable::check_values(uint64_t first, std::span<const Key> keys, std::span<const float> values) const {
  const size_t bad = first_not_finite(values);
  if (bad == values.size()) return {};
  const size_t position = bad / spec_.width;
  return invalid("the push to row {} has {} in column {}; nothing was changed",
                 keys.empty() ? first + position : keys[position], values[bad], bad % spec_.width);
}

void DenseTable::update_run(uint64_t first, const float* pushed, size_t rows) {
  const uint64_t offset = first - first_row_;
  updater_->update_rows(values_.data() + offset * spec_.width, states_.data() + offset * state_width_, pushed, rows,
                        spec_.width);
}

}  // namespace pscloud

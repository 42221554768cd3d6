#include "engine/table/table_dense.h"

#include <algorithm>
#include <cstring>

#include "engine/table/scan_rows.h"
#include "engine/table/table_check.h"

namespace pscloud {
namespace {

constexpr size_t kBlockFloats = 2048;
constexpr size_t kMovedBytes = size_t{64} << 20;

}  // namespace

DenseTable::DenseTable(const TableSpec& spec, std::unique_ptr<Updater> updater, uint64_t first_row, uint64_t row_count)
    : spec_(spec),
      place_("table " + spec.name),
      updater_(std::move(updater)),
      first_row_(first_row),
      row_count_(row_count),
      state_width_(updater_->state_width(spec.width)),
      values_(std::in_place, values_bytes()),
      states_(row_count * state_width_ * sizeof(float)),
      values_at_(reinterpret_cast<float*>(values_->data())) {
  if (spec_.initial.low == 0 && spec_.initial.high == 0) return;
  for (uint64_t row = 0; row < row_count; ++row)
    fill_initial(spec_.initial, first_row + row, {values() + row * spec_.width, spec_.width});
}

Result<> DenseTable::push(std::span<const Key> keys, std::span<const float> values, RowMemo* memo) {
  TRY(prepare_push(keys, values, memo));
  push_checked(keys, values.data(), nullptr);
  return {};
}

Result<> DenseTable::pull(std::span<const Key> keys, std::span<float> out, RowMemo* memo) const {
  TRY(check_rows(keys, out.size(), memo).at(place_));
  for (size_t i = 0; i < keys.size(); ++i)
    std::memcpy(out.data() + i * spec_.width, value(keys[i]), spec_.width * sizeof(float));
  return {};
}

Result<> DenseTable::push_pull(std::span<const Key> keys, std::span<const float> values, std::span<float> out,
                               RowMemo* memo) {
  TRY(check_float_count(keys.size(), spec_.width, out.size()).at(place_));
  TRY(prepare_push(keys, values, memo));
  push_checked(keys, values.data(), out.data());
  return {};
}

Result<> DenseTable::push_range(uint64_t first, std::span<const float> values) {
  TRY(prepare_push_range(first, values));
  update_run(first, values.data(), values.size() / spec_.width, nullptr);
  return {};
}

Result<> DenseTable::pull_range(uint64_t first, std::span<float> out) const {
  TRY(check_range(first, out.size()).at(place_));
  if (!out.empty()) std::memcpy(out.data(), value(first), out.size_bytes());
  return {};
}

Result<> DenseTable::push_pull_range(uint64_t first, std::span<const float> values, std::span<float> out) {
  TRY(check_float_count(values.size() / spec_.width, spec_.width, out.size()).at(place_));
  TRY(prepare_push_range(first, values));
  update_run(first, values.data(), values.size() / spec_.width, out.data());
  return {};
}

Result<std::span<const float>> DenseTable::view_range(uint64_t first, uint64_t count) const {
  TRY(check_range(first, count * spec_.width).at(place_));
  return std::span(value(first), count * spec_.width);
}

Result<> DenseTable::prepare_push(std::span<const Key> keys, std::span<const float> values, RowMemo* memo) {
  TRY(check_rows(keys, values.size(), memo).at(place_));
  return check_values(0, keys, values).at(place_);
}

Result<> DenseTable::prepare_push_range(uint64_t first, std::span<const float> values) {
  TRY(check_range(first, values.size()).at(place_));
  return check_values(first, {}, values).at(place_);
}

Result<> DenseTable::set(std::span<const Key> keys, std::span<const float> floats, ScanKind kind) {
  const size_t each = this->floats(kind);
  TRY(check_rows_to_set(keys, floats, each).at(place_));
  for (const Key key : keys) TRY(check_range(key, spec_.width).at(place_));
  for (size_t i = 0; i < keys.size(); ++i) {
    const uint64_t row = keys[i] - first_row_;
    const float* const from = floats.data() + i * each;
    const std::span value(values() + row * spec_.width, spec_.width);
    const std::span state(states() + row * state_width_, state_width_);
    versions_.begin(row, 1);
    std::ranges::copy_n(from, spec_.width, value.begin());
    versions_.end(row, 1);
    if (kind == ScanKind::kState) {
      std::ranges::copy_n(from + spec_.width, state_width_, state.begin());
    } else {
      updater_->state_of(value, state);
    }
  }
  return {};
}

Result<PublishedRows> DenseTable::publish(const Lender& lend) {
  if (!values_) return published_;
  const size_t value_bytes = values_bytes();
  const size_t versions_at = (value_bytes + 63) / 64 * 64;
  const size_t versions = version_count(row_count_, spec_.width);
  const auto all = std::make_shared<Buffer>(TRY(lend(versions_at + versions * sizeof(uint64_t)).at(place_)));
  // Piece by piece: it never takes twice the memory.
  for (size_t at = 0; at < value_bytes; at += kMovedBytes) {
    const size_t size = std::min(kMovedBytes, value_bytes - at);
    std::memcpy(all->data() + at, values_->data() + at, size);
    values_->forget(at, size);
  }
  std::byte* const first_version = all->data() + versions_at;
  std::memset(first_version, 0, versions * sizeof(uint64_t));
  values_.reset();
  values_at_ = reinterpret_cast<float*>(all->data());
  versions_ = {{reinterpret_cast<uint64_t*>(first_version), versions}, spec_.width};
  published_ = {std::make_shared<const Buffer>(std::span(first_version, versions * sizeof(uint64_t)), all), all};
  return published_;
}

ScannedRows DenseTable::scan(uint64_t first, uint64_t rows_max, ScanKind kind) const {
  return scan_rows(first, std::min(rows_max, rows() - std::min(first, rows())), kind, spec_.width, [&](uint64_t row) {
    return RowParts{first_row_ + row, values() + row * spec_.width, {states() + row * state_width_, state_width_}};
  });
}

uint64_t DenseTable::bytes() const {
  const uint64_t values = values_bytes() + (values_ ? 0 : published_.versions->size());
  return sizeof *this + values + states_.size();
}

Result<> DenseTable::check_rows(std::span<const Key> keys, size_t floats, RowMemo* memo) const {
  TRY(check_float_count(keys.size(), spec_.width, floats));
  if (memo == nullptr || !memo->checked) TRY(check_keys_increase(keys));
  if (memo != nullptr) memo->checked = true;
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
  const size_t bad = first_not_finite(values, keys.empty() && !values.empty() ? value(first) : nullptr);
  if (bad == values.size()) return {};
  const size_t position = bad / spec_.width;
  return invalid("the push to row {} has {} in column {}; nothing was changed",
                 keys.empty() ? first + position : keys[position], values[bad], bad % spec_.width);
}

void DenseTable::push_checked(std::span<const Key> keys, const float* pushed, float* out) {
  // Neighbours in one go: the lists of a dense table often have long runs.
  for (size_t begin = 0; begin < keys.size();) {
    size_t end = begin + 1;
    while (end < keys.size() && keys[end] == keys[end - 1] + 1) ++end;
    update_run(keys[begin], pushed + begin * spec_.width, end - begin, out ? out + begin * spec_.width : nullptr);
    begin = end;
  }
}

// The values afterwards go to `out` if it is not null.
void DenseTable::update_run(uint64_t first, const float* pushed, size_t rows, float* out) {
  const size_t width = spec_.width;
  float* values_at = values() + (first - first_row_) * width;
  float* states_at = states() + (first - first_row_) * state_width_;
  // Block by block, so that what was written is read from the nearest cache, and no reader waits for more than one.
  const size_t block = out == nullptr && values_ ? rows : std::max<size_t>(1, kBlockFloats / width);
  for (size_t begin = 0; begin < rows; begin += block) {
    const size_t count = std::min(block, rows - begin);
    versions_.begin(first - first_row_ + begin, count);
    updater_->update_rows(values_at + begin * width, states_at + begin * state_width_, pushed + begin * width, count,
                          width);
    versions_.end(first - first_row_ + begin, count);
    if (out != nullptr) std::memcpy(out + begin * width, values_at + begin * width, count * width * sizeof(float));
  }
}

}  // namespace pscloud

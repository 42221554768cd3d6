#include "engine/table/table_sketch.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "engine/table/table_check.h"

namespace pscloud {

SketchProbes sketch_probes(Key key) {
  constexpr uint32_t kFactor = 0xc6a4a793;
  uint32_t hash = 0xbc9f1d34 ^ (8 * kFactor);
  for (const auto half : {static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32)}) {
    hash += half;
    hash *= kFactor;
    hash ^= hash >> 16;
  }
  return {hash, (hash >> 17) | (hash << 15)};
}

SketchTable::SketchTable(const TableSpec& spec, uint64_t first_cell, uint64_t cells)
    : spec_(spec), first_cell_(first_cell), cells_(std::clamp(cells, kCellsMin, kCellsMax)) {}

Result<> SketchTable::push(std::span<const Key> keys, std::span<const float> values, RowMemo* /*memo*/) {
  TRY(check(keys, values));
  for (size_t i = 0; i < keys.size(); ++i) {
    const auto count = static_cast<uint32_t>(std::min<float>(values[i], kCountMax));
    auto [at, step] = sketch_probes(keys[i]);
    for (uint32_t k = 0; k < spec_.hashes; ++k, at += step) {
      uint8_t& cell = cells_[at % cells_.size()];
      cell = static_cast<uint8_t>(std::min<uint32_t>(kCountMax, cell + count));
    }
  }
  return {};
}

Result<> SketchTable::pull(std::span<const Key> keys, std::span<float> out, RowMemo* /*memo*/) const {
  TRY(check_sizes(keys, out.size()));
  for (size_t i = 0; i < keys.size(); ++i) {
    uint8_t least = kCountMax;
    auto [at, step] = sketch_probes(keys[i]);
    for (uint32_t k = 0; k < spec_.hashes; ++k, at += step) least = std::min(least, cells_[at % cells_.size()]);
    out[i] = least;
  }
  return {};
}

Result<> SketchTable::push_pull(std::span<const Key> keys, std::span<const float> values, std::span<float> out,
                                RowMemo* memo) {
  TRY(check_sizes(keys, out.size()));
  TRY(push(keys, values, memo));
  return pull(keys, out, memo);
}

Result<> SketchTable::prepare_push(std::span<const Key> keys, std::span<const float> values, RowMemo* /*memo*/) {
  return check(keys, values);
}

Result<> SketchTable::check_sizes(std::span<const Key> keys, size_t floats) const {
  const std::string place = "table " + spec_.name;
  TRY(check_keys_increase(keys).at(place));
  return check_float_count(keys.size(), 1, floats).at(place);
}

Result<> SketchTable::check(std::span<const Key> keys, std::span<const float> values) const {
  TRY(check_sizes(keys, values.size()));
  const auto bad = std::ranges::find_if(values, [](float count) { return !(count >= 0) || std::isinf(count); });
  if (bad != values.end()) return invalid("table {}: a count of {}", spec_.name, *bad);
  return {};
}

Error SketchTable::no_rows() const {
  return invalid("table {} is a sketch: it has counts of keys, no rows", spec_.name);
}

Result<> SketchTable::push_range(uint64_t /*first*/, std::span<const float> /*values*/) { return no_rows(); }
Result<> SketchTable::pull_range(uint64_t /*first*/, std::span<float> /*out*/) const { return no_rows(); }
Result<> SketchTable::push_pull_range(uint64_t /*first*/, std::span<const float> /*values*/, std::span<float> /*out*/) {
  return no_rows();
}
Result<std::span<const float>> SketchTable::view_range(uint64_t /*first*/, uint64_t /*count*/) const {
  return no_rows();
}
Result<> SketchTable::prepare_push_range(uint64_t /*first*/, std::span<const float> /*values*/) { return no_rows(); }
Result<PublishedRows> SketchTable::publish(const Lender& /*lend*/) { return no_rows(); }

ScannedRows SketchTable::scan(uint64_t first, uint64_t rows_max, ScanKind kind) const {
  ScannedRows rows{.next = first};
  if (kind != ScanKind::kState) return rows;
  const uint64_t count = (cells_.size() + kCellsInRow - 1) / kCellsInRow;
  for (; rows.next < count && rows.next - first < rows_max; ++rows.next) {
    const size_t begin = rows.next * kCellsInRow;
    const auto cells = std::span(cells_).subspan(begin, std::min(kCellsInRow, cells_.size() - begin));
    if (std::ranges::all_of(cells, [](uint8_t cell) { return cell == 0; })) continue;
    rows.keys.push_back(first_cell_ + begin);
    // Whole numbers of 24 bits, which a float has exactly.
    std::array<uint32_t, kFloatsInRow> packed{};
    for (size_t i = 0; i < cells.size(); ++i) packed[i / 3] |= uint32_t{cells[i]} << (i % 3 * 8);
    for (const uint32_t three : packed) rows.floats.push_back(static_cast<float>(three));
  }
  rows.nonzero = rows.keys.size();
  return rows;
}

Result<> SketchTable::set(std::span<const Key> keys, std::span<const float> floats, ScanKind kind) {
  if (kind != ScanKind::kState) return no_rows();
  TRY(check_float_count(keys.size(), kFloatsInRow, floats.size()).at("table " + spec_.name));
  for (const Key key : keys) {
    const uint64_t begin = key - first_cell_;
    if (key < first_cell_ || begin >= cells_.size() || begin % kCellsInRow != 0) {
      return invalid("table {}: no row of cells begins at {} here", spec_.name, key);
    }
  }
  for (const float three : floats) {
    if (!(three >= 0 && three < 1 << 24 && three == std::floor(three))) {
      return invalid("table {}: {} is not three counts", spec_.name, three);
    }
  }
  for (size_t row = 0; row < keys.size(); ++row) {
    const size_t begin = keys[row] - first_cell_;
    for (size_t i = 0; i < kCellsInRow && begin + i < cells_.size(); ++i) {
      const auto packed = static_cast<uint32_t>(floats[row * kFloatsInRow + i / 3]);
      cells_[begin + i] = std::min(kCountMax, static_cast<uint8_t>(packed >> (i % 3 * 8)));
    }
  }
  return {};
}

}  // namespace pscloud

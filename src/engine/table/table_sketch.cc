#include "engine/table/table_sketch.h"

#include <algorithm>
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

SketchTable::SketchTable(const TableSpec& spec, uint64_t cells)
    : spec_(spec), cells_(std::clamp(cells, kCellsMin, kCellsMax)) {}

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
Result<> SketchTable::set(std::span<const Key>, std::span<const float>, ScanKind) { return no_rows(); }
Result<PublishedRows> SketchTable::publish(const Lender& /*lend*/) { return no_rows(); }

ScannedRows SketchTable::scan(uint64_t first, uint64_t /*rows_max*/, ScanKind /*kind*/) const {
  return {.next = first};
}

}  // namespace pscloud

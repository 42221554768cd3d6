#include "engine/table_check.h"

#include <algorithm>
#include <bit>

#include "base/hash.h"

namespace pscloud {

Result<> check_keys_increase(std::span<const Key> keys) {
  bool increase = true;
  for (size_t i = 1; i < keys.size(); ++i) increase &= keys[i - 1] < keys[i];
  if (increase) return {};
  for (size_t i = 1; i < keys.size(); ++i) {
    if (keys[i - 1] >= keys[i])
      return invalid("keys must strictly increase: position {} has key {} after {}", i, keys[i], keys[i - 1]);
  }
  return {};
}

Result<> check_float_count(size_t rows, uint32_t width, size_t floats) {
  if (floats % width == 0 && floats / width == rows) return {};
  return invalid("{} rows of width {} need {} floats, not {}", rows, width, rows * width, floats);
}

size_t first_not_finite(std::span<const float> values) {
  // Whole blocks without a branch, so that the loop is vectorised; the position is sought in the block that has one.
  constexpr size_t kBlock = 1024;
  constexpr uint32_t kExponent = 0x7f800000;
  const auto is_bad = [](float value) { return (std::bit_cast<uint32_t>(value) & kExponent) == kExponent; };
  for (size_t begin = 0; begin < values.size(); begin += kBlock) {
    const auto block = values.subspan(begin, std::min(kBlock, values.size() - begin));
    uint32_t bad = 0;
    for (const float value : block) bad |= is_bad(value);
    if (bad) return static_cast<size_t>(std::find_if(block.begin(), block.end(), is_bad) - block.begin()) + begin;
  }
  return values.size();
}

void fill_initial(const InitialValues& initial, Key key, std::span<float> row) {
  if (initial.low == initial.high) {
    std::fill(row.begin(), row.end(), initial.low);
    return;
  }
  constexpr uint64_t kStep = 0x9e3779b97f4a7c15;  // 2^64 / golden ratio: columns and seeds far apart
  const uint64_t stream = mix_key(key ^ mix_key(initial.seed + kStep));
  // In double: high - low may be above the largest float.
  const double low = initial.low;
  const double span = initial.high - low;
  for (size_t column = 0; column < row.size(); ++column) {
    const double uniform = static_cast<double>(mix_key(stream + column * kStep) >> 11) * 0x1p-53;
    row[column] = static_cast<float>(low + span * uniform);
  }
}

}  // namespace pscloud

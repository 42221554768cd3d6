#include "engine/table/table_check.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "base/hash.h"
#include "base/vector_clones.h"
#include "engine/table/prefetch.h"

namespace pscloud {
namespace {

// Without branches, so that they are vectorised.
PSCLOUD_VECTOR_CLONES
bool increase(const Key* keys, size_t count) {
  uint64_t falls = 0;
  for (size_t i = 1; i < count; ++i) falls |= keys[i - 1] >= keys[i];
  return falls == 0;
}

bool is_bad(float value) {
  constexpr uint32_t kExponent = 0x7f800000;
  return (std::bit_cast<uint32_t>(value) & kExponent) == kExponent;
}

PSCLOUD_VECTOR_CLONES
bool has_bad(const float* values, size_t count) {
  uint32_t bad = 0;
  for (size_t i = 0; i < count; ++i) bad |= is_bad(values[i]);
  return bad != 0;
}

}  // namespace

bool keys_increase(std::span<const Key> keys) { return increase(keys.data(), keys.size()); }

Result<> check_keys_increase(std::span<const Key> keys) {
  if (keys_increase(keys)) return {};
  for (size_t i = 1; i < keys.size(); ++i) {
    if (keys[i - 1] >= keys[i])
      return invalid("keys must strictly increase: position {} has key {} after {}", i, keys[i], keys[i - 1]);
  }
  return {};
}

Result<> check_float_count(size_t rows, size_t width, size_t floats) {
  if (floats % width == 0 && floats / width == rows) return {};
  return invalid("{} rows of width {} need {} floats, not {}", rows, width, rows * width, floats);
}

size_t first_not_finite(std::span<const float> values, const float* next) {
  constexpr size_t kBlock = 1024;
  constexpr size_t kAhead = kBlock / 4;  // more would be gone from the cache before it is used
  for (size_t begin = 0; begin < values.size(); begin += kBlock) {
    const auto block = values.subspan(begin, std::min(kBlock, values.size() - begin));
    if (next != nullptr && block.size() == kBlock) {
      const float* ahead = next + begin / kBlock * kAhead;
      for (size_t at = 0; at < kAhead; at += kCacheLine / sizeof(float)) __builtin_prefetch(ahead + at);
    }
    if (has_bad(block.data(), block.size()))
      return static_cast<size_t>(std::ranges::find_if(block, is_bad) - block.begin()) + begin;
  }
  return values.size();
}

Result<> check_rows_to_set(std::span<const Key> keys, std::span<const float> floats, size_t each) {
  TRY(check_float_count(keys.size(), each, floats.size()));
  if (!increase(keys.data(), keys.size())) {
    std::vector<Key> sorted(keys.begin(), keys.end());
    std::ranges::sort(sorted);
    const auto twice = std::ranges::adjacent_find(sorted);
    if (twice != sorted.end()) return invalid("the key {} stands there twice; nothing was changed", *twice);
  }
  const size_t bad = first_not_finite(floats);
  if (bad == floats.size()) return {};
  return invalid("the row of key {} has {} among its floats; nothing was changed", keys[bad / each], floats[bad]);
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

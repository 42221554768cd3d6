#include <algorithm>
#include <cmath>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/hash.h"
#include "engine/filter/filter_order.h"
#include "pscloud/table.h"

namespace pscloud {
namespace {

constexpr size_t kTableNameBytesMax = 200;
constexpr uint32_t kWidthMax = 65536;
constexpr uint32_t kHashesMax = 30;
constexpr size_t kFiltersMax = 8;
constexpr size_t kUpdaterNameBytesMax = 64;
constexpr size_t kUpdaterNumbersMax = 16;

// ASCII without control characters: names go into logs, metrics and file names.
bool is_printable(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= 0x20 && c <= 0x7e; });
}

Result<> check_filters(const std::vector<FilterSpec>& filters) {
  if (filters.size() > kFiltersMax) return invalid("{} of them, at most {} are allowed", filters.size(), kFiltersMax);
  std::vector<FilterKind> kinds;
  for (const FilterSpec& filter : filters) {
    if (filter.kind == FilterKind::kFixedPoint && (filter.num_bytes < 1 || filter.num_bytes > 3))
      return invalid("fixed_point with num_bytes {}: must be 1, 2 or 3", filter.num_bytes);
    // Of every kind, though only noise uses them: specs are compared, and NaN equals nothing.
    if (!std::isfinite(filter.mean) || !std::isfinite(filter.stddev) || filter.stddev < 0)
      return invalid("{} with mean {} and stddev {}: both must be finite, stddev not negative",
                     filter_name(filter.kind), filter.mean, filter.stddev);
    kinds.push_back(filter.kind);
  }
  return check_filter_order(kinds);
}

Result<> check_shape(const TableSpec& spec) {
  if (spec.width < 1 || spec.width > kWidthMax)
    return invalid("width is {}, must be 1 to {} floats", spec.width, kWidthMax);
  switch (spec.kind) {
    case TableKind::kSparse: return {};
    case TableKind::kSketch:
      if (spec.rows == 0) return invalid("a sketch needs rows > 0, which are its cells");
      if (spec.hashes < 1 || spec.hashes > kHashesMax) {
        return invalid("a sketch with {} hashes: it must have 1 to {}", spec.hashes, kHashesMax);
      }
      if (spec.width != 1 || spec.updater.name != "add") return invalid("a sketch has width 1 and the updater add");
      return {};
    case TableKind::kDense: {
      if (spec.rows == 0) return invalid("a dense table needs rows > 0");
      const uint64_t rows_max = UINT64_MAX / sizeof(float) / spec.width;
      if (spec.rows > rows_max)
        return invalid("{} rows of width {} are more than 2^64 bytes; at most {} rows fit", spec.rows, spec.width,
                       rows_max);
      return {};
    }
  }
  return invalid("kind is {}, must be 0 (dense), 1 (sparse) or 2 (sketch)", static_cast<int>(spec.kind));
}

Result<> check_updater(const UpdaterSpec& updater) {
  if (updater.name.empty() || updater.name.size() > kUpdaterNameBytesMax || !is_printable(updater.name))
    return invalid("the updater's name must have 1 to {} printable characters", kUpdaterNameBytesMax);
  if (updater.numbers.size() > kUpdaterNumbersMax)
    return invalid("updater {} has {} numbers, at most {} are allowed", updater.name, updater.numbers.size(),
                   kUpdaterNumbersMax);
  for (const auto& [name, number] : updater.numbers) {
    if (name.empty() || name.size() > kUpdaterNameBytesMax || !is_printable(name))
      return invalid("names of updater {}'s numbers must have 1 to {} printable characters", updater.name,
                     kUpdaterNameBytesMax);
    if (!std::isfinite(number)) return invalid("{} of updater {} is {}, must be finite", name, updater.name, number);
  }
  return {};
}

Result<> check_options(const TableSpec& spec) {
  TRY(check_shape(spec));
  TRY(check_updater(spec.updater));
  switch (spec.consistency.kind) {
    case Consistency::Kind::kAsync:
    case Consistency::Kind::kBsp:
    case Consistency::Kind::kSum:
    case Consistency::Kind::kSsp: break;
    default:
      return invalid("consistency is {}, must be async, bsp, ssp or sum", static_cast<int>(spec.consistency.kind));
  }
  const InitialValues& initial = spec.initial;
  if (!std::isfinite(initial.low) || !std::isfinite(initial.high) || initial.low > initial.high)
    return invalid("initial values from {} to {}: both must be finite and low not above high", initial.low,
                   initial.high);
  TRY(check_filters(spec.push_filters).at("push filters"));
  TRY(check_filters(spec.pull_filters).at("pull filters"));
  return {};
}

}  // namespace

Result<> validate(const TableSpec& spec) {
  if (spec.name.empty() || spec.name.size() > kTableNameBytesMax)
    return invalid("the name of a table must have 1 to {} bytes, this one has {}", kTableNameBytesMax,
                   spec.name.size());
  if (!is_printable(spec.name)) return invalid("the name of a table must be printable ASCII");
  return check_options(spec).at(fmt::format("table {}", spec.name));
}

TableId table_id(std::string_view name) {
  const auto id = static_cast<TableId>(hash64(bytes_of(name)));
  return id == 0 ? 1 : id;
}

}  // namespace pscloud

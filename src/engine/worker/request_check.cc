#include "engine/worker/request_check.h"

#include "engine/table/table_check.h"

namespace pscloud {

Error no_such_row(const TableSpec& spec, uint64_t row) {
  return invalid("there is no row {} in table '{}': it has {}, numbered from 0 to {}; create it with more", row,
                 spec.name, spec.rows, spec.rows - 1);
}

Result<> check_request_keys(const TableSpec& spec, std::span<const Key> keys) {
  const bool increase = keys_increase(keys);
  for (size_t i = 1; i < keys.size() && !increase; ++i) {
    if (keys[i] > keys[i - 1]) continue;
    return invalid(
        "keys for table '{}' must strictly increase, but position {} has {} after {}: sort them and add up what "
        "is repeated",
        spec.name, i, keys[i], keys[i - 1]);
  }
  if (spec.kind == TableKind::kDense && !keys.empty() && keys.back() >= spec.rows) {
    return no_such_row(spec, keys.back());
  }
  return {};
}

Result<> check_request_sizes(const TableSpec& spec, FrameType type, size_t rows, size_t values, size_t out) {
  const size_t floats = rows * spec.width;
  const bool pushes = type != FrameType::kPull;
  const bool pulls = type != FrameType::kPush;
  if ((!pushes || values == floats) && (!pulls || out == floats)) return {};
  return invalid("{} rows of table '{}', which is {} wide, are {} floats, not {}", rows, spec.name, spec.width, floats,
                 pushes && values != floats ? values : out);
}

Result<> check_set_request(const TableSpec& spec, std::span<const Key> keys, size_t floats, ScanKind kind) {
  if (kind != ScanKind::kAll && kind != ScanKind::kState) {
    return invalid("rows of table '{}' are set as kAll or kState", spec.name);
  }
  const size_t least = keys.size() * spec.width;
  const bool whole = kind == ScanKind::kAll ? floats == least
                     : keys.empty()         ? floats == 0
                                            : floats >= least && floats % keys.size() == 0;
  if (!whole) {
    return invalid("{} floats are not those of {} rows of table '{}', which is {} wide", floats, keys.size(), spec.name,
                   spec.width);
  }
  for (const Key key : keys) {
    if (spec.kind != TableKind::kSparse && key >= spec.rows) return no_such_row(spec, key);
  }
  return {};
}

}  // namespace pscloud

#include "engine/table/table_store.h"

#include <algorithm>

#include "base/check.h"
#include "engine/table/table_dense.h"
#include "engine/table/table_sketch.h"
#include "engine/table/table_sparse.h"

namespace pscloud {
namespace {

constexpr size_t kStateWidthMax = 1 << 20;

}  // namespace

Result<std::unique_ptr<TableStore>> TableStore::make(const TableSpec& spec, const UpdaterCatalog& updaters,
                                                     uint64_t first_row, uint64_t row_count, uint64_t bytes_max) {
  TRY(validate(spec));
  auto updater = updaters.make(spec.updater);
  // kInvalid, not the catalog's kNotFound: the table is not missing, its spec is wrong.
  if (!updater) return invalid("table {}: {}", spec.name, updater.error().message);
  const size_t state_width = (*updater)->state_width(spec.width);
  if (state_width > kStateWidthMax)
    return invalid("table {}: updater {} wants {} floats of state a row, at most {} are allowed", spec.name,
                   spec.updater.name, state_width, kStateWidthMax);
  const uint64_t limit = spec.bytes_max == 0 ? bytes_max : std::min(spec.bytes_max, bytes_max);
  if (spec.kind == TableKind::kSparse) return std::make_unique<SparseTable>(spec, *std::move(updater), limit);

  if (spec.kind == TableKind::kSketch) {
    if (row_count > limit) {
      return invalid("table {}: {} cells are more than its limit of {} bytes on one server owner", spec.name, row_count,
                     limit);
    }
    return std::make_unique<SketchTable>(spec, first_row, row_count);
  }

  CHECK(first_row <= spec.rows && row_count <= spec.rows - first_row);
  const uint64_t row_bytes = (spec.width + state_width) * sizeof(float);
  if (row_count > limit / row_bytes)
    return invalid(
        "table {}: {} rows of {} bytes are more than its limit of {} bytes on one server owner; raise bytes_max of the "
        "table or memory_max of the servers, or use more servers",
        spec.name, row_count, row_bytes, limit);
  return std::make_unique<DenseTable>(spec, *std::move(updater), first_row, row_count);
}

}  // namespace pscloud

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "base/bytes.h"
#include "engine/table/row_memo.h"
#include "pscloud/error.h"
#include "pscloud/table.h"
#include "pscloud/updater.h"

namespace pscloud {

// What other processes need to read a dense table's rows: a version for each rows_per_version() of them
// (row_versions.h), in the memory that the rows are in.
struct PublishedRows {
  SharedBuffer versions;
  std::shared_ptr<void> keeper;  // of the memory
};
using Lender = std::function<Result<Buffer>(size_t)>;

// The rows of one table that one owner holds. Not thread-safe: touched by its owner only.
// Everything given is checked: a call that returns an error has changed nothing.
class TableStore {
 public:
  // `first_row`, `row_count`: the range of a dense table that this owner holds, or the cells of a sketch; a sparse one
  // needs none.
  // kInvalid if the spec cannot be made here (unknown updater, more bytes than `bytes_max`).
  static Result<std::unique_ptr<TableStore>> make(const TableSpec& spec, const UpdaterCatalog& updaters,
                                                  uint64_t first_row, uint64_t row_count, uint64_t bytes_max);
  virtual ~TableStore() = default;

  // Keys strictly increase; values.size() == keys.size() * width, all finite. A dense table's keys are rows it holds.
  // `memo` is of this very list and this table: the first call fills it, later ones look nothing up.
  virtual Result<> push(std::span<const Key> keys, std::span<const float> values, RowMemo* memo = nullptr) = 0;
  virtual Result<> pull(std::span<const Key> keys, std::span<float> out, RowMemo* memo = nullptr) const = 0;
  // push(), then pull(), at the price of one of them.
  virtual Result<> push_pull(std::span<const Key> keys, std::span<const float> values, std::span<float> out,
                             RowMemo* memo = nullptr) = 0;

  // Rows first..first+n of a dense table; kInvalid for a sparse one.
  virtual Result<> push_range(uint64_t first, std::span<const float> values) = 0;
  virtual Result<> pull_range(uint64_t first, std::span<float> out) const = 0;
  virtual Result<> push_pull_range(uint64_t first, std::span<const float> values, std::span<float> out) = 0;
  // Where these rows lie, until something is pushed.
  virtual Result<std::span<const float>> view_range(uint64_t first, uint64_t count) const = 0;

  // Checks a push and makes its rows, with their initial values, without changing any: when this has returned ok,
  // the same push cannot fail. For pushes that take effect later.
  virtual Result<> prepare_push(std::span<const Key> keys, std::span<const float> values, RowMemo* memo = nullptr) = 0;
  virtual Result<> prepare_push_range(uint64_t first, std::span<const float> values) = 0;

  // Puts rows in place of what is there, or makes them: floats(kind) of each, kind being kAll or kState. For kAll the
  // updater says the state. Keys differ; new rows get their numbers in the order of the keys.
  virtual Result<> set(std::span<const Key> keys, std::span<const float> floats, ScanKind kind) = 0;

  // Other processes can read the rows from now on, in memory from `lend`: the first call moves them there.
  // kInvalid for a sparse table.
  virtual Result<PublishedRows> publish(const Lender& lend) = 0;

  // Rows first, first+1, ... as they are numbered here, at most so many. Rows keep their numbers.
  virtual ScannedRows scan(uint64_t first, uint64_t rows_max, ScanKind kind) const = 0;
  // Floats of each row in it.
  size_t floats(ScanKind kind) const {
    if (kind == ScanKind::kCount) return 0;
    return spec().width + (kind == ScanKind::kState ? state_width() : 0);
  }

  // It may grow to this. A table that never grows has no use for it.
  virtual void limit_bytes(uint64_t bytes_max) { (void)bytes_max; }

  virtual const TableSpec& spec() const = 0;
  virtual uint64_t rows() const = 0;
  virtual size_t state_width() const = 0;  // floats that the updater keeps beside a row
  virtual uint64_t bytes() const = 0;      // memory of rows, state and index
};

}  // namespace pscloud

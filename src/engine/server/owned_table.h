#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/floats.h"
#include "engine/key_list.h"
#include "engine/table/table_store.h"
#include "net/frame.h"
#include "pscloud/error.h"
#include "pscloud/table.h"

namespace pscloud {

// A push, pull or push-pull at its owner, its filters undone.
struct Operation {
  FrameType type = FrameType::kPull;
  uint64_t session = 0;
  uint32_t rank = 0;
  uint64_t seq = 0;
  TableId table = 0;
  uint32_t clock = 0;   // of the worker when it asked
  uint32_t needed = 0;  // what the minimum of all clocks must have reached
  bool range = false;   // rows first..first+count instead of keys
  bool in_place = false;
  uint64_t first = 0;
  uint32_t count = 0;
  KeyList keys;
  Floats values;
  uint64_t bytes = 0;  // it takes here, unpacked

  bool pushes() const { return type == FrameType::kPush || type == FrameType::kPushPull; }
  bool pulls() const { return type == FrameType::kPull || type == FrameType::kPushPull; }
};

// One table at one owner: its rows, and for bsp and sum the pushes of a clock that not all workers have finished.
class OwnedTable {
 public:
  static Result<std::unique_ptr<OwnedTable>> make(const TableSpec& spec, const UpdaterCatalog& updaters, uint32_t owner,
                                                  uint32_t owners, uint64_t bytes_max);

  const TableSpec& spec() const { return store_->spec(); }
  uint64_t rows() const { return store_->rows(); }
  uint64_t bytes() const { return store_bytes_ + pending_bytes_; }

  // It may grow to this, and to no more than its spec allows.
  void limit_bytes(uint64_t bytes_max);

  // An error has changed nothing. A bsp push takes effect in settle(); that it will is certain once this returned ok.
  Result<> push(Operation& operation);
  Result<> pull(const Operation& operation, std::span<float> out) const;
  // Both at once: `out` is what is there afterwards. For a bsp table it is what was there before, since the push takes
  // effect later.
  Result<> push_pull(Operation& operation, std::span<float> out);

  // The values of rows first..first+count as they are now, for one call: they are not copied.
  Result<SharedBuffer> borrow(uint64_t first, uint32_t count) const;
  // Where the rows of a pull in place lie, or for no rows the versions of all; in memory from `lend`.
  Result<SharedBuffer> pull_in_place(const Operation& operation, const Lender& lend);

  // As TableStore's. Takes effect at once, even if the table is bsp.
  Result<> set(std::span<const Key> keys, std::span<const float> floats, ScanKind kind);

  // As TableStore's. What has not taken effect yet is not in it.
  ScannedRows scan(uint64_t first, uint64_t rows_max, ScanKind kind) const {
    return store_->scan(first, rows_max, kind);
  }
  size_t floats(ScanKind kind) const { return store_->floats(kind); }

  // All workers have finished the clocks below `minimum`: their pushes take effect, by clock, rank and number,
  // or for sum one sum for each clock.
  void settle(uint32_t minimum);
  // The least minimum at which settle() has something to do; UINT32_MAX if none.
  uint32_t next_settlement() const;

 private:
  OwnedTable(std::unique_ptr<TableStore> store, uint64_t bytes_max)
      : store_(std::move(store)), store_bytes_(store_->bytes()), bytes_max_(bytes_max) {}

  Result<> push_now(const Operation& operation);
  Result<> push_later(Operation& operation);
  void apply(const Operation& operation);
  void push_sum(std::span<const Operation> operations);
  template <class Write>
  Result<> grow_by(uint64_t waiting_bytes, Write write);

  std::unique_ptr<TableStore> store_;
  uint64_t store_bytes_;  // kept here: to count them is not cheap
  uint64_t bytes_max_;
  std::vector<Operation> pending_;
  uint64_t pending_bytes_ = 0;
};

}  // namespace pscloud

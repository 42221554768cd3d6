#pragma once

#include <map>
#include <memory>
#include <vector>

#include "engine/worker/slicer.h"
#include "pscloud/table_view.h"

namespace pscloud {

// Where the rows of one owner lie in its memory, as this worker sees it.
struct OwnerMemory {
  std::vector<SharedBuffer> rows;
  SharedBuffer versions;
};

// What is asked of the owners for a view of a whole dense table, and the view that their answers make. Owners on this
// machine are asked where their rows lie, once; after that only whether the clock lets us read. Others send their rows.
class ViewRequest {
 public:
  // `in_place`: of each owner, whether it is on this machine. `known`: what earlier requests learned.
  ViewRequest(TableId table, std::shared_ptr<const TableSpec> spec, const std::vector<bool>& in_place,
              const std::map<uint32_t, OwnerMemory>& known);

  // They write into this object: it must live until they are answered or given up.
  std::vector<Slice> slices();

  // After all have been answered.
  Result<TableView> view() const;
  std::map<uint32_t, OwnerMemory> known() const;

 private:
  struct Owner {
    uint32_t number = 0;
    uint64_t first = 0;
    uint64_t rows = 0;
    bool in_place = false;
    OwnerMemory memory;
    std::vector<float> copy;
  };
  Slice ask(const Owner& owner, uint64_t first, uint64_t rows, uint64_t bytes, SharedBuffer* answer) const;
  Result<TableView::Run> run_of(const Owner& owner) const;

  const TableId table_;
  const std::shared_ptr<const TableSpec> spec_;
  const uint32_t owner_count_;
  const std::shared_ptr<std::vector<Owner>> owners_ = std::make_shared<std::vector<Owner>>();  // those that have rows
};

}  // namespace pscloud

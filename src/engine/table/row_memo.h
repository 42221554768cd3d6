#pragma once

#include <cstdint>
#include <vector>

namespace pscloud {

// What a table learned from a list of keys, for the next use of the very same list: it then looks up nothing. Good for
// ever, since rows neither move nor go. Belongs to one list and one table; filled and read by the table only.
struct RowMemo {
  bool checked = false;        // the keys strictly increase
  bool complete = false;       // every key has a row
  std::vector<uint32_t> rows;  // of each key, in a sparse table; SparseIndex::kNone if it had none. Empty at first.
};

}  // namespace pscloud

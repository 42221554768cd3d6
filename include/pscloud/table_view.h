#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "pscloud/error.h"

namespace pscloud {

// The rows of a dense table where they lie: in the memory of the servers that are on this machine, else in a copy.
// Cheap to copy; valid as long as one copy of it lives, whatever happens to the job.
//
// Rows in a server's memory change as pushes arrive. To use them where they are, look at version() before and after:
//   const uint64_t before = view.version(first, rows);
//   ... use the values ...
//   if (before == 0 || view.version(first, rows) != before) { some changed meanwhile: what was read may be torn }
// In a bsp table nothing changes between Worker::view() and this worker's next clock().
class TableView {
 public:
  // Some rows, one after the other.
  struct Run {
    uint64_t first_row = 0;
    std::span<const float> values;
    std::span<const uint64_t> versions = {};  // see version(); none for a copy
  };
  TableView(uint32_t width, std::vector<Run> runs, std::shared_ptr<const void> keeper)
      : width_(width), runs_(std::move(runs)), keeper_(std::move(keeper)) {}

  // All rows, in order; those of one server owner are one run.
  std::span<const Run> runs() const { return runs_; }
  uint32_t width() const { return width_; }

  // Grows with every change of a row among these; 0 while one of them (or a near one) is being changed, and for rows
  // that are not there.
  uint64_t version(uint64_t first_row, uint64_t rows) const;

  // Copies the rows from `first_row` on, each as it was at one moment. kTimeout if a server does not end writing, as
  // when it died in the middle of it.
  Result<> read(uint64_t first_row, std::span<float> out) const;

 private:
  bool has(uint64_t first_row, uint64_t rows) const;
  // Calls `use(run, offset, rows)` for each piece of these rows.
  template <class Use>
  void for_each_piece(uint64_t first_row, uint64_t rows, Use use) const;

  uint32_t width_;
  std::vector<Run> runs_;
  std::shared_ptr<const void> keeper_;
};

}  // namespace pscloud

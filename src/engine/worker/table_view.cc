#include "pscloud/table_view.h"

#include <algorithm>
#include <cstring>
#include <thread>

#include "engine/table/row_versions.h"

namespace pscloud {

namespace {

constexpr int kLooksMax = 1'000'000;  // a block of rows is written in microseconds

// The versions of rows first..first+rows of a run.
std::span<const uint64_t> versions_of(const TableView::Run& run, uint64_t first, uint64_t rows, uint64_t width) {
  if (run.versions.empty() || rows == 0) return {};
  const uint64_t block = rows_per_version(width);
  return run.versions.subspan(first / block, (first + rows - 1) / block - first / block + 1);
}

}  // namespace

template <class Use>
void TableView::for_each_piece(uint64_t first_row, uint64_t rows, Use use) const {
  uint64_t at = first_row;
  for (const Run& run : runs_) {
    const uint64_t run_rows = run.values.size() / width_;
    if (at < run.first_row || at >= run.first_row + run_rows) continue;
    const uint64_t offset = at - run.first_row;
    const uint64_t count = std::min(first_row + rows - at, run_rows - offset);
    if (count > 0) use(run, offset, count);
    at += count;
  }
}

bool TableView::has(uint64_t first_row, uint64_t rows) const {
  const uint64_t all = runs_.empty() ? 0 : runs_.back().first_row + runs_.back().values.size() / width_;
  return first_row <= all && rows <= all - first_row;
}

uint64_t TableView::version(uint64_t first_row, uint64_t rows) const {
  if (!has(first_row, rows)) return 0;
  uint64_t sum = 1;
  bool changing = false;
  for_each_piece(first_row, rows, [&](const Run& run, uint64_t offset, uint64_t count) {
    const uint64_t version = version_of(versions_of(run, offset, count, width_));
    changing |= version == 0;
    sum += version;
  });
  return changing ? 0 : sum;
}

Result<> TableView::read(uint64_t first_row, std::span<float> out) const {
  if (out.size() % width_ != 0 || !has(first_row, out.size() / width_)) {
    return invalid("{} floats from row {} on are not whole rows of this table", out.size(), first_row);
  }
  float* to = out.data();
  Result<> outcome;
  // A block of one version after the other: a copy of one seldom meets a write.
  const auto read_block = [&](const Run& run, uint64_t first, uint64_t rows) -> Result<> {
    const std::span<const uint64_t> versions = versions_of(run, first, rows, width_);
    for (int look = 0; look < kLooksMax; ++look) {
      const uint64_t before = version_of(versions);
      if (before != 0) {
        std::memcpy(to, run.values.data() + first * width_, rows * width_ * sizeof(float));
        if (version_of(versions) == before) {
          to += rows * width_;
          return {};
        }
      }
      std::this_thread::yield();
    }
    return timed_out("row {} is being written to all the time: its server hangs or has died", run.first_row + first);
  };
  for_each_piece(first_row, out.size() / width_, [&](const Run& run, uint64_t offset, uint64_t count) {
    const uint64_t block = rows_per_version(width_);
    for (const uint64_t end = offset + count; outcome && offset < end;) {
      const uint64_t rows = std::min(end - offset, block - offset % block);
      outcome = read_block(run, offset, rows);
      offset += rows;
    }
  });
  return outcome;
}

}  // namespace pscloud

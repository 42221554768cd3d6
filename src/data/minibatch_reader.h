#pragma once

#include <cstdint>
#include <optional>

#include "data/block_cache.h"
#include "data/example_reader.h"
#include "data/localizer.h"
#include "data/numbered_rows.h"
#include "io/watched_store.h"

namespace pscloud {

// Where what was read is kept: nothing, or files that begin with `prefix`.
struct CachePlace {
  FileStore* store = nullptr;  // borrowed
  std::string prefix = {};
};

// Examples of parts of files, some at a time, with their keys numbered: from a cache if it has the part, else from the
// file, and then the cache has it for the next time, as it has what was damaged. One thread.
class MinibatchReader {
 public:
  // `rows` at a time, which have at most `features_max`. The store is borrowed.
  MinibatchReader(FileStore& store, ExampleFormat format, bool ignore_groups, size_t rows, const CachePlace& cache = {},
                  Labels labels = Labels::kNeeded, size_t features_max = Localizer::kFeaturesMax);

  MinibatchReader(const MinibatchReader&) = delete;
  MinibatchReader& operator=(const MinibatchReader&) = delete;

  // The examples of this part come next. `keep`: they will be wanted again.
  Result<> open(const FilePart& part, bool keep = true);

  // The next examples of the part; false at its end.
  Result<bool> next(NumberedRows& out);

  // Of the part: what was left out so far; of one from the cache it is known at the end.
  const BadLines& bad_lines() const { return summary_.bad; }
  bool reads_records() const { return text_.reads_records(); }

  // Of all parts so far, as they are stored; one from the cache counts at its end.
  uint64_t stored_bytes() const { return stored_bytes_; }

 private:
  Result<bool> next_cached(NumberedRows& out);
  Result<> continue_in_text(const Error& damage);
  Result<bool> next_of_text(NumberedRows& out);
  Result<> number(const RowSlice& rows, NumberedRows& out);
  void begin_to_keep();
  void keep_none(const Error& why);

  const size_t rows_;
  const size_t features_max_;
  uint64_t stored_bytes_ = 0;
  WatchedStore counting_;
  ExampleReader text_;
  Localizer localizer_;
  std::optional<BlockCache> cache_;
  bool complained_ = false;

  FilePart part_;
  bool keep_ = true;
  std::optional<BlockReader> cached_;   // else it is read from text_
  std::optional<BlockWriter> writing_;  // for the next time
  uint64_t given_ = 0;                  // rows of the part
  uint64_t bytes_before_ = 0;           // stored_bytes_ when it was opened
  ReadSummary summary_;
};

}  // namespace pscloud

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/numbered_rows.h"
#include "pscloud/types.h"

namespace pscloud {

inline constexpr uint32_t kRowsInBatchBlock = 10000;  // whose keys are numbered together

// Examples of one worker, all in memory. Keys are numbered block by block as they are read, so that a feature takes
// four bytes, and what has to be looked up in the end are the keys of blocks instead of those of features.
struct BatchExamples {
  struct Part {
    std::string text;  // of a FilePart
    uint64_t rows = 0;
  };
  std::vector<Part> parts;        // one after the other
  RowBlock rows;                  // without keys
  std::vector<Key> keys;          // of blocks, one after the other: the same may come several times
  std::vector<uint32_t> numbers;  // of each feature: the place of its key in `keys`

  void append(const NumberedRows& block);
  void append(const BatchExamples& part);
};

}  // namespace pscloud

#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "io/file_store.h"
#include "learn/batch_examples.h"
#include "learn/descent.h"
#include "learn/early_stop.h"
#include "pscloud/error.h"

namespace PS::LM {
class BatchPosition;
}

namespace pscloud {

constexpr double kNoFilter = 1e20;  // a threshold that no gradient is below

// What iterations of batch training leave to the next one, beside columns and rows.
struct BatchPosition {
  uint32_t iteration = 0;  // the next one
  double objective = 0;    // of the one before; 0: there was none
  double momentum = 1;
  double threshold = kNoFilter;
  bool all_active = true;
  uint32_t delay_max = UINT32_MAX;  // of blocks: fewer once the objective has risen
  EarlyStop early = {};             // on the validation data
};
void put_position(const BatchPosition& position, PS::LM::BatchPosition& out);
BatchPosition get_position(const PS::LM::BatchPosition& position);

// What one worker adds to a checkpoint: `columns` of those it speaks for, by increasing keys, and all of its rows.
// Returns the checksum of the file.
Result<uint64_t> write_batch_state(FileStore& store, const std::string& uri, const Descent& descent,
                                   std::span<const uint32_t> columns, std::span<const BatchExamples::Part> parts);

// The other way round: fills in what this worker has of it. `columns` are all of its columns, by increasing keys; one
// that no file has stays as it is. The parts whose rows are in the file are marked in `found`. kInvalid if one of them
// has another number of examples now.
Result<> read_batch_state(FileStore& store, const std::string& uri, std::span<const uint32_t> columns,
                          std::span<const BatchExamples::Part> parts, Descent& descent, std::vector<uint8_t>& found);

// Reads all of such a file, and returns its checksum. kCorrupt if it is damaged.
Result<uint64_t> verify_batch_state(FileStore& store, const std::string& uri);

}  // namespace pscloud

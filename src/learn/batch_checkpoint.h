#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "io/file_store.h"
#include "learn/batch_examples.h"
#include "learn/batch_state.h"
#include "learn/checkpoint.pb.h"
#include "learn/checkpoint_settings.h"
#include "pscloud/worker.h"

namespace pscloud {

// Checkpoints of batch training. All workers call these alike.

// The one to go on from, the same for all; nothing: the run begins at its beginning.
Result<std::optional<PS::LM::Checkpoint>> find_batch_checkpoint(Worker& worker, FileStore& store,
                                                                const CheckpointSettings& settings);

// What one worker has, between two iterations. Borrows all of it.
struct BatchState {
  Descent& descent;
  std::span<const uint32_t>
      columns;  // by increasing keys: all when it is read; when it is written, those it speaks for
  std::span<const BatchExamples::Part> parts;
};

// Writes checkpoint `number`, a number that no other has. `examples`: of all workers; if one of them has died since,
// there will be no such checkpoint, and no error.
Result<> write_batch_checkpoint(Worker& worker, FileStore& store, const CheckpointSettings& settings, uint64_t number,
                                const Table& weights, const BatchState& state, const BatchPosition& position,
                                uint64_t examples);

// Fills the table of weights, which has no rows yet, and what this worker has. kInvalid if the data are others than
// they were.
Result<> restore_batch(Worker& worker, FileStore& store, const CheckpointSettings& settings,
                       const PS::LM::Checkpoint& checkpoint, const Table& weights, const BatchState& state,
                       uint64_t examples);

}  // namespace pscloud

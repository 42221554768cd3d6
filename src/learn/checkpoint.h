#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "io/file_store.h"
#include "learn/checkpoint.pb.h"
#include "learn/checkpoint_settings.h"
#include "pscloud/worker.h"

namespace pscloud {

// Checkpoints of a run, whatever it trains. All workers call these alike and share what there is to do.

// Writes checkpoint `number`, a number that no other has, of tables that nobody changes meanwhile. One worker fills in
// by `describe` what is not of the tables. Older ones are removed when it is whole. If it cannot be written, a warning
// says why, and the older ones stay.
Result<> write_checkpoint(Worker& worker, FileStore& store, const CheckpointSettings& settings, uint64_t number,
                          std::span<const Table> tables, const std::function<Result<>(PS::LM::Checkpoint&)>& describe);

// Fills the tables, which have no rows yet, from a checkpoint that was written by so many server threads.
Result<> restore_tables(Worker& worker, FileStore& store, const CheckpointSettings& settings, uint64_t number,
                        std::span<const Table> tables, uint32_t parts);

// The run has ended well.
Result<> remove_checkpoints(Worker& worker, FileStore& store, const CheckpointSettings& settings);

}  // namespace pscloud

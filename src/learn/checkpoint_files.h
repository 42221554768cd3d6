#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "io/file_store.h"
#include "learn/checkpoint.pb.h"
#include "learn/checkpoint_settings.h"
#include "pscloud/error.h"

namespace pscloud {

// The files of checkpoints: `checkpoint-<number>`, which says what it is and is written last, and beside it the parts
// of its tables, and in batch training what each worker has. docs/checkpoint.md has their contents.
std::string checkpoint_file(const std::string& folder, uint64_t number);
std::string checkpoint_part_file(const std::string& folder, uint64_t number, size_t table, size_t part);
std::string checkpoint_worker_file(const std::string& folder, uint64_t number, size_t worker);

Result<> write_manifest(FileStore& store, const std::string& folder, const PS::LM::Checkpoint& checkpoint);
// kCorrupt if it is damaged.
Result<PS::LM::Checkpoint> read_manifest(FileStore& store, const std::string& folder, uint64_t number);

// Numbers of those in a folder that were finished, the newest first; a folder that is missing has none.
Result<std::vector<uint64_t>> list_checkpoints(FileStore& store, const std::string& folder);

// All files are there, and have their checksums. Reads all of them.
Result<> verify_checkpoint(FileStore& store, const std::string& folder, const PS::LM::Checkpoint& checkpoint);

// The newest that is whole; one that is damaged is named in a warning, and the one before it is looked at. kInvalid if
// there is none, or it was made with other settings.
Result<PS::LM::Checkpoint> newest_checkpoint(FileStore& store, const CheckpointSettings& settings);

// Only `keep` of those up to `newest` stay, the newest; with the others goes what a killed run has left. 0 keeps none.
Result<> remove_old_checkpoints(FileStore& store, const std::string& folder, uint64_t newest, uint32_t keep);

// Before a run begins: with `resume` there is something to go on from, and without there is nothing to be overwritten.
Result<> check_checkpoints_before_start(FileStore& store, const CheckpointSettings& settings);

}  // namespace pscloud

#pragma once

#include <cstdint>
#include <string>

#include "io/file_store.h"
#include "pscloud/worker.h"

namespace pscloud {

// A model in files: `<prefix>_S<n>` has the weights that are not zero of part n of the table. The workers share the
// writing: all call this, after the last push has arrived. Returns how many weights there are.
Result<uint64_t> save_model(Worker& worker, const Table& table, FileStore& store, const std::string& prefix);

// The other way round, for a table whose updater is "assign": the workers share the reading of files.
Result<uint64_t> load_model(Worker& worker, const Table& table, FileStore& store, std::span<const FileInfo> files);

}  // namespace pscloud

#pragma once

#include <cstdint>
#include <string>

#include "io/file_store.h"
#include "learn/model_format.h"
#include "learn/model_tables.h"
#include "pscloud/worker.h"

namespace pscloud {

// How the weights of a file follow each other.
enum class ModelOrder : uint8_t {
  kAsTheyCame,  // to the servers
  kByKey,       // takes memory for all weights of a part, at the worker that writes it
};

// A model in files: `<prefix>_S<n>` has the weights that are not zero, and the embeddings, of part n of the tables. The
// workers share the writing: all call this, after the last push has arrived. Returns how many weights are not zero.
Result<uint64_t> save_model(Worker& worker, const ModelTables& model, FileStore& store, const ModelOutput& output,
                            ModelOrder order = ModelOrder::kAsTheyCame);

struct LoadedModel {
  ModelTables tables;
  uint64_t weights = 0;
  uint64_t embeddings = 0;
};

// The other way round: the workers share the reading of files. Into tables of its own, to score by and not to train,
Result<LoadedModel> load_model(Worker& worker, FileStore& store, std::span<const FileInfo> files);
// or into those of a model that has no rows yet. What the updaters keep beside the rows is such that training can go on
// from them.
Result<> load_model_into(Worker& worker, const ModelTables& model, FileStore& store, std::span<const FileInfo> files);

}  // namespace pscloud

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "io/file_store.h"
#include "learn/interactions.h"
#include "pscloud/error.h"
#include "pscloud/types.h"

namespace PS::LM {
class DataConfig;
}

namespace pscloud {

// How a model is written: lines (model_text.h), or rows with checksums (row_file.h).
enum class ModelFormat { kText, kBinary };

// What a config says of `model_output`: a form, and the one name that its files begin with.
struct ModelOutput {
  ModelFormat format = ModelFormat::kText;
  std::string prefix;
};
Result<ModelOutput> model_output(const PS::LM::DataConfig& model);

// And of `model_input`: patterns. The form of each file is known by its first bytes, whatever `format` says.
Result<std::vector<std::string>> model_input(const PS::LM::DataConfig& model);

// A file of a model.
class ModelWriter {
 public:
  virtual ~ModelWriter() = default;

  // As many weights as keys; embeddings of all or some of them, or none.
  virtual Result<> write(std::span<const Key> keys, std::span<const float> weights, const Embeddings& embeddings) = 0;
  // The file is there when this returns.
  virtual Result<> commit() = 0;
  virtual uint64_t weights() const = 0;  // that are not zero, written so far
};
// `dim`: numbers of an embedding; 0: there are none.
std::unique_ptr<ModelWriter> make_model_writer(ModelFormat format, std::unique_ptr<Output> output, uint32_t dim);

// Gives `take` all weights of a file of either form that are not zero, or have an embedding, many at a time, in its
// order. A part of a checkpoint of weights is a model too: what stands there beside them is left out. kCorrupt says
// what is wrong and where.
using TakeModel =
    std::function<Result<>(std::span<const Key> keys, std::span<const float> weights, const Embeddings& embeddings)>;
Result<> read_model(FileStore& store, const std::string& uri, const TakeModel& take);

}  // namespace pscloud

#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>

#include "io/file_store.h"
#include "learn/interactions.h"
#include "learn/model_format.h"
#include "pscloud/error.h"
#include "pscloud/types.h"

namespace pscloud {

// A model as text: of each weight that is not zero a line with its key, a tab and the weight; if the key has an
// embedding, the line has its numbers too, a tab before each, whatever the weight. What is read is what was written, to
// the last bit.
class ModelTextWriter {
 public:
  explicit ModelTextWriter(std::unique_ptr<Output> output) : output_(std::move(output)) {}

  // As many weights as keys; embeddings of all or some of them, or none.
  Result<> write(std::span<const Key> keys, std::span<const float> weights, const Embeddings& embeddings = {});
  // The file is there when this returns.
  Result<> commit();

  uint64_t weights() const { return weights_; }  // that are not zero, written so far

 private:
  std::unique_ptr<Output> output_;
  std::string text_;         // not written yet
  std::string second_half_;  // its memory, within write()
  uint64_t weights_ = 0;
};

// Gives `take` all of a file, many lines at a time, in its order. kCorrupt with the line that is none, or whose
// embedding has another length than those before.
Result<> read_model_text(FileStore& store, const std::string& uri, const TakeModel& take);

}  // namespace pscloud

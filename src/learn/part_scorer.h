#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "data/minibatch_reader.h"
#include "learn/bad_lines.h"
#include "learn/local_embeddings.h"
#include "learn/model_tables.h"
#include "pscloud/worker.h"

namespace pscloud {

// Scores examples of files by a model, whose weights and embeddings are pulled as they are needed. Borrows what it is
// given. One thread.
class PartScorer {
 public:
  static constexpr uint32_t kRowsScored = 10000;  // at a time

  PartScorer(Worker& worker, const ModelTables& model, FileStore& store, ExampleFormat format, bool strict,
             const CachePlace& cache = {}, Labels labels = Labels::kNeeded);

  // Gives `take` the labels and scores of all examples of a part, many at a time, in their order. Returns how many bad
  // lines there were among them.
  using Take = std::function<Result<>(std::span<const float> labels, std::span<const float> scores)>;
  Result<uint64_t> score(const FilePart& part, const Take& take);

  // Read so far, as they are stored.
  uint64_t stored_bytes() const { return reader_.stored_bytes(); }

 private:
  Worker& worker_;
  const ModelTables& model_;
  FileStore& store_;
  const bool strict_;
  MinibatchReader reader_;
  NumberedRows examples_;
  BadLineComplaints complaints_;
  std::vector<float> weights_;
  std::optional<LocalEmbeddings> embedded_;
  std::vector<float> scores_;
};

}  // namespace pscloud

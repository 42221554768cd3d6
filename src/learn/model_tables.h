#pragma once

#include <optional>
#include <vector>

#include "learn/embedding_settings.h"
#include "pscloud/worker.h"

namespace pscloud {

// Of a factorization machine. A key has an embedding if its count is above the threshold, where there are counts, and
// if its weight is not zero, where l1_shrink asks for that. Only such keys may be pulled: the table has initial values
// for any other, too. Nor are others pushed, so that there is memory for these only.
struct EmbeddingTables {
  Table embeddings;
  std::optional<Table> counts = {};
  float threshold = 0;
  bool l1_shrink = false;
};

// Where the servers have a model.
struct ModelTables {
  Table weights;
  std::optional<EmbeddingTables> embedded = {};  // else it is linear
};

std::vector<Table> tables_of(const ModelTables& model);

// Makes its tables, or finds them.
Result<ModelTables> create_model(Worker& worker, const TableSpec& weights,
                                 const std::optional<EmbeddingSettings>& settings, const Consistency& consistency = {});

}  // namespace pscloud

#include "learn/model_tables.h"

namespace pscloud {

std::vector<Table> tables_of(const ModelTables& model) {
  std::vector<Table> tables{model.weights};
  if (model.embedded) tables.push_back(model.embedded->embeddings);
  if (model.embedded && model.embedded->counts) tables.push_back(*model.embedded->counts);
  return tables;
}

Result<ModelTables> create_model(Worker& worker, const TableSpec& weights,
                                 const std::optional<EmbeddingSettings>& settings, const Consistency& consistency) {
  const auto create = [&](TableSpec spec) {
    spec.consistency = consistency;
    return worker.create_table(spec);
  };
  ModelTables model{.weights = TRY(create(weights)), .embedded = {}};
  if (!settings) return model;
  EmbeddingTables& embedded = model.embedded.emplace();
  embedded.embeddings = TRY(create(settings->table));
  if (settings->counts) embedded.counts = TRY(create(*settings->counts));
  embedded.threshold = static_cast<float>(settings->threshold);
  embedded.l1_shrink = settings->l1_shrink;
  return model;
}

}  // namespace pscloud

#include "learn/model_tables.h"

namespace pscloud {

std::vector<Table> tables_of(const ModelTables& model) {
  std::vector<Table> tables{model.weights};
  if (model.embedded) tables.push_back(model.embedded->embeddings);
  if (model.embedded && model.embedded->counts) tables.push_back(*model.embedded->counts);
  return tables;
}

Result<ModelTables> create_model(Worker& worker, const TableSpec& weights,
                                 const std::optional<EmbeddingSettings>& settings) {
  ModelTables model{.weights = TRY(worker.create_table(weights)), .embedded = {}};
  if (!settings) return model;
  EmbeddingTables& embedded = model.embedded.emplace();
  embedded.embeddings = TRY(worker.create_table(settings->table));
  if (settings->counts) embedded.counts = TRY(worker.create_table(*settings->counts));
  embedded.threshold = static_cast<float>(settings->threshold);
  embedded.l1_shrink = settings->l1_shrink;
  return model;
}

}  // namespace pscloud

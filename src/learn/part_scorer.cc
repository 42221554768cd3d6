#include "learn/part_scorer.h"

#include "learn/linear.h"

namespace pscloud {

PartScorer::PartScorer(Worker& worker, const ModelTables& model, FileStore& store, ExampleFormat format, bool strict,
                       const CachePlace& cache, Labels labels)
    : worker_(worker),
      model_(model),
      store_(store),
      strict_(strict),
      // Weights have no groups.
      reader_(store, format, true, kRowsScored, cache, labels) {
  if (model.embedded) embedded_.emplace(worker, *model.embedded);
}

Result<uint64_t> PartScorer::score(const FilePart& part, const Take& take) {
  TRY(reader_.open(part));
  while (TRY(reader_.next(examples_))) {
    const RowSlice& rows = examples_.rows();
    weights_.resize(examples_.keys().size());
    const Ticket pulled = worker_.pull(model_.weights, examples_.keys(), weights_);
    if (embedded_) embedded_->ask_counts(examples_.keys());
    TRY(pulled.wait());
    scores_.resize(rows.rows());
    score_rows(rows, examples_.columns(), weights_, scores_);
    if (embedded_) {
      TRY(embedded_->ask(examples_.keys(), weights_));
      TRY(embedded_->wait());
      embedded_->add_interactions(rows, examples_.columns(), scores_);
    }
    TRY(take(rows.labels, scores_));
  }
  TRY(complaints_.complain(store_, part.uri, reader_, strict_));
  return reader_.bad_lines().count;
}

}  // namespace pscloud

#include "learn/part_scorer.h"

#include "learn/linear.h"

namespace pscloud {

namespace {
constexpr size_t kRowsScored = 10000;  // at a time
}  // namespace

PartScorer::PartScorer(Worker& worker, const ModelTables& model, FileStore& store, TextFormat format, bool strict)
    : worker_(worker),
      model_(model),
      store_(store),
      strict_(strict),
      // Weights have no groups.
      reader_(store, make_parser(format, true)) {
  if (model.embedded) embedded_.emplace(worker, *model.embedded);
}

Result<uint64_t> PartScorer::score(const FilePart& part, const Take& take) {
  const uint64_t bad_before = reader_.bad_lines();
  TRY(reader_.open(part));
  while (true) {
    const RowSlice rows = TRY(reader_.next(kRowsScored));
    if (rows.rows() == 0) break;
    localizer_.localize(rows.keys);
    weights_.resize(localizer_.keys().size());
    const Ticket pulled = worker_.pull(model_.weights, localizer_.keys(), weights_);
    if (embedded_) embedded_->ask_counts(localizer_.keys());
    TRY(pulled.wait());
    scores_.resize(rows.rows());
    score_rows(rows, localizer_.columns(), weights_, scores_);
    if (embedded_) {
      TRY(embedded_->ask(localizer_.keys(), weights_));
      TRY(embedded_->wait());
      embedded_->add_interactions(rows, localizer_.columns(), scores_);
    }
    TRY(take(rows.labels, scores_));
  }
  TRY(complaints_.complain(store_, reader_, strict_));
  return reader_.bad_lines() - bad_before;
}

}  // namespace pscloud

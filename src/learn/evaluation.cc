#include "learn/evaluation.h"

#include "data/example_reader.h"
#include "data/localizer.h"
#include "io/file_pattern.h"
#include "learn/bad_lines.h"
#include "learn/config.pb.h"
#include "learn/data_settings.h"
#include "learn/linear.h"
#include "learn/model_files.h"
#include "learn/shared_work.h"

namespace pscloud {
namespace {

constexpr const char* kPool = "evaluate";
constexpr uint32_t kBadLinesPlace = ScoreSummary::kPlaces;
constexpr uint32_t kPlacesAtATime = 1 << 19;
constexpr size_t kRows = 10000;

// Scores of the examples of one part, with weights that are pulled as they are needed.
class PartScorer {
 public:
  PartScorer(Worker& worker, const Table& table, FileStore& store, const EvaluationSettings& settings)
      : worker_(worker),
        table_(table),
        store_(store),
        strict_(settings.strict),
        // Weights have no groups.
        reader_(store, make_parser(settings.format, true)) {}

  Result<std::vector<Addend>> score(const FilePart& part) {
    ScoreSummary summary;
    const uint64_t bad_before = reader_.bad_lines();
    TRY(reader_.open(part));
    while (true) {
      const RowSlice rows = TRY(reader_.next(kRows));
      if (rows.rows() == 0) break;
      localizer_.localize(rows.keys);
      weights_.resize(localizer_.keys().size());
      TRY(worker_.pull(table_, localizer_.keys(), weights_).wait());
      scores_.resize(rows.rows());
      score_rows(rows, localizer_.columns(), weights_, scores_);
      summary.add(rows.labels, scores_);
    }
    TRY(complaints_.complain(store_, reader_, strict_));
    std::vector<Addend> addends = summary.addends();
    addends.push_back({kBadLinesPlace, static_cast<double>(reader_.bad_lines() - bad_before)});
    return addends;
  }

 private:
  Worker& worker_;
  const Table& table_;
  FileStore& store_;
  const bool strict_;
  ExampleReader reader_;
  BadLineComplaints complaints_;
  Localizer localizer_;
  std::vector<float> weights_;
  std::vector<float> scores_;
};

}  // namespace

Result<EvaluationSettings> evaluation_settings(const PS::LM::Config& config) {
  if (!config.has_validation_data()) return invalid("validation_data is missing: on what shall the model be tried?");
  if (!config.has_model_input()) return invalid("model_input is missing: which model shall be tried?");
  const PS::LM::DataConfig& model = config.model_input();
  if (model.format() != PS::LM::DataConfig::TEXT || model.file_size() == 0) {
    return invalid("model_input must have format: TEXT and the patterns of its files");
  }
  EvaluationSettings settings;
  settings.model_files.assign(model.file().begin(), model.file().end());
  TRY(check_data(config.validation_data(), "validation_data"));
  settings.files.assign(config.validation_data().file().begin(), config.validation_data().file().end());
  settings.format = TRY(text_format(config.validation_data(), "validation_data"));
  return settings;
}

Result<Evaluation> evaluate(Worker& worker, FileStore& store, const EvaluationSettings& settings) {
  Evaluation evaluation;
  const std::vector<FileInfo> model = TRY(find_files(store, settings.model_files));
  const std::vector<FileInfo> files = TRY(find_files(store, settings.files));
  evaluation.model_files = model.size();
  evaluation.data_files = files.size();

  const Table table = TRY(worker.create_table({.name = "model", .updater = {"assign"}}));
  evaluation.weights = TRY(load_model(worker, table, store, model));
  PartScorer scorer(worker, table, store, settings);
  const auto items = TRY(cut_into_items(store, files));
  TRY(share_work(worker, kPool, items, [&](const WorkItem& item) -> Result<std::vector<Addend>> {
    return scorer.score(TRY(part_of_text(item.text)));
  }));
  for (uint32_t first = 0; first < ScoreSummary::kPlaces; first += kPlacesAtATime) {
    const uint32_t count = std::min(kPlacesAtATime, ScoreSummary::kPlaces - first);
    evaluation.scores.add_sums(first, TRY(worker.tally(kPool, {}, first, count)));
  }
  evaluation.bad_lines = static_cast<uint64_t>(TRY(worker.tally(kPool, {}, kBadLinesPlace, 1)).front());
  return evaluation;
}

}  // namespace pscloud

#include "learn/evaluation.h"

#include <algorithm>

#include "data/file_part.h"
#include "io/file_pattern.h"
#include "learn/config.pb.h"
#include "learn/data_settings.h"
#include "learn/model_files.h"
#include "learn/model_format.h"
#include "learn/part_scorer.h"
#include "learn/score_summary.h"
#include "learn/shared_work.h"

namespace pscloud {
namespace {

constexpr uint32_t kBadLinesPlace = ScoreSummary::kPlaces;
constexpr uint32_t kPlacesAtATime = 1 << 19;

// Places in the tally of the result.
enum ScoredPlace : uint32_t {
  kScoredExamples,
  kScoredBadLines,
  kScoredAuc,
  kScoredAccuracy,
  kScoredLogloss,
  kScoredPlaces
};

// One worker does this, and the large tally goes: that of each pass would stay until the end of the job.
Result<std::vector<Addend>> sum_up_scores(Worker& worker, const std::string& tally) {
  ScoreSummary summary;
  for (uint32_t first = 0; first < ScoreSummary::kPlaces; first += kPlacesAtATime) {
    const uint32_t count = std::min(kPlacesAtATime, ScoreSummary::kPlaces - first);
    summary.add_sums(first, TRY(worker.tally(tally, {}, first, count)));
  }
  return std::vector<Addend>{{kScoredExamples, static_cast<double>(summary.examples())},
                             {kScoredBadLines, TRY(worker.tally(tally, {}, kBadLinesPlace, 1)).front()},
                             {kScoredAuc, summary.auc()},
                             {kScoredAccuracy, summary.accuracy()},
                             {kScoredLogloss, summary.logloss()}};
}

}  // namespace

Result<EvaluationSettings> evaluation_settings(const PS::LM::Config& config) {
  if (!config.has_validation_data()) return invalid("validation_data is missing: on what shall the model be tried?");
  if (!config.has_model_input()) return invalid("model_input is missing: which model shall be tried?");
  EvaluationSettings settings;
  settings.model_files = TRY(model_input(config.model_input()));
  settings.selection = TRY(data_selection(config.validation_data(), "validation_data"));
  settings.files.assign(config.validation_data().file().begin(), config.validation_data().file().end());
  settings.format = TRY(example_format(config.validation_data(), "validation_data"));
  return settings;
}

Result<Scored> score_parts(Worker& worker, const ModelTables& model, FileStore& store,
                           std::span<const std::string> parts, ExampleFormat format, bool strict,
                           const std::string& name, const CachePlace& cache, ReadMeter* meter) {
  PartScorer scorer(worker, model, store, format, strict, cache);
  TRY(share_work(worker, name, parts, [&](const WorkItem& item) -> Result<std::vector<Addend>> {
    ScoreSummary summary;
    const uint64_t bad_lines =
        TRY(scorer.score(TRY(part_of_text(item.text)), [&](auto labels, auto scores) -> Result<> {
          summary.add(labels, scores);
          return meter == nullptr ? Result<>() : meter->note(scores.size(), scorer.stored_bytes());
        }));
    std::vector<Addend> addends = summary.addends();
    addends.push_back({kBadLinesPlace, static_cast<double>(bad_lines)});
    return addends;
  }));
  const std::string result = name + ", its result";
  const std::vector<std::string> once{result};
  TRY(share_work(worker, result, once, [&](const WorkItem&) { return sum_up_scores(worker, name); },
                 {.slow = SlowWork::kAwait, .on_pause = {}, .forgets = name}));
  const std::vector<double> told = TRY(worker.tally(result, {}, 0, kScoredPlaces));
  if (told[kScoredExamples] == 0) return no_examples("validation_data", static_cast<uint64_t>(told[kScoredBadLines]));
  return Scored{.examples = static_cast<uint64_t>(told[kScoredExamples]),
                .bad_lines = static_cast<uint64_t>(told[kScoredBadLines]),
                .auc = told[kScoredAuc],
                .accuracy = told[kScoredAccuracy],
                .logloss = told[kScoredLogloss]};
}

Result<std::vector<std::string>> validation_parts(Worker& worker, FileStore& store,
                                                  const ValidationSettings& settings) {
  if (settings.files.empty()) return std::vector<std::string>();
  const std::vector<SelectedFile> files =
      TRY(select_files(worker, store, settings.files, settings.format, settings.selection, "validation_data"));
  return items_of_pass(TRY(cut_into_items(worker, store, files, "validation_data")), settings.selection, 1);
}

Result<Evaluation> evaluate(Worker& worker, FileStore& store, const EvaluationSettings& settings,
                            const ShowReading& show) {
  Evaluation evaluation;
  const std::vector<FileInfo> model_files = TRY(find_files(store, settings.model_files));
  const std::vector<SelectedFile> files =
      TRY(select_files(worker, store, settings.files, settings.format, settings.selection, "validation_data"));
  const std::vector<std::string> parts =
      items_of_pass(TRY(cut_into_items(worker, store, files, "validation_data")), settings.selection, 1);
  evaluation.model_files = model_files.size();
  evaluation.data_files = files.size();

  const LoadedModel model = TRY(load_model(worker, store, model_files));
  evaluation.weights = model.weights;
  evaluation.embeddings = model.embeddings;
  const SystemClock clock;
  ReadMeter meter(worker, "evaluate, how far", selected_bytes(files, settings.selection), show, clock);
  evaluation.scored =
      TRY(score_parts(worker, model.tables, store, parts, settings.format, settings.strict, "evaluate", {}, &meter));
  return evaluation;
}

}  // namespace pscloud

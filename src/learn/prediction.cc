#include "learn/prediction.h"

#include <fmt/format.h>

#include <cmath>

#include "data/number_text.h"
#include "io/file_pattern.h"
#include "learn/model_files.h"
#include "learn/part_scorer.h"
#include "learn/shared_work.h"

namespace pscloud {
namespace {

constexpr const char* kPredictPool = "predict";
enum PredictionPlace : uint32_t { kPredicted, kNotPredicted, kPredictionPlaces };

}  // namespace

Result<> check_prediction(const EvaluationSettings& settings) {
  for (const auto& [given, name] :
       {std::pair{settings.selection.shuffle, "shuffle"}, {settings.selection.replica > 1, "replica"}}) {
    if (given) return invalid("validation_data.{}: predictions are written once, in the order of the examples", name);
  }
  return {};
}

Result<Predictions> predict(Worker& worker, FileStore& store, const EvaluationSettings& settings,
                            const std::string& prefix, bool raw, const ShowReading& show) {
  TRY(check_prediction(settings));
  const std::vector<FileInfo> model_files = TRY(find_files(store, settings.model_files));
  const std::vector<SelectedFile> files =
      TRY(select_files(worker, store, settings.files, settings.format, settings.selection, "validation_data"));
  const LoadedModel model = TRY(load_model(worker, store, model_files));
  Predictions predictions;
  predictions.files = files.size();
  predictions.weights = model.weights;

  std::vector<std::string> items;
  for (const SelectedFile& file : files)
    items.push_back(
        to_text({file.info.uri, file.begin, file.end, file.info.version_is_global ? file.info.version : ""}));
  PartScorer scorer(worker, model.tables, store, settings.format, settings.strict, {}, Labels::kMayLack);
  const SystemClock clock;
  ReadMeter meter(worker, "predict, how far", selected_bytes(files, settings.selection), show, clock);
  std::string text;
  TRY(share_work(worker, kPredictPool, items, [&](const WorkItem& item) -> Result<std::vector<Addend>> {
    const auto output = TRY(store.create(fmt::format("{}-{}", prefix, item.number)));
    uint64_t examples = 0;
    const uint64_t bad_lines = TRY(scorer.score(
        TRY(part_of_text(item.text)), [&](std::span<const float> labels, std::span<const float> scores) -> Result<> {
          text.clear();
          for (size_t i = 0; i < scores.size(); ++i) {
            // A bad line has a line too, so that each stands beside its own.
            if (std::isnan(labels[i])) {
              text += "nan\n";
              continue;
            }
            append_number(text, raw ? scores[i] : 1 / (1 + std::exp(-scores[i])));
            text += '\n';
            ++examples;
          }
          TRY(output->write(text));
          return meter.note(scores.size(), scorer.stored_bytes());
        }));
    TRY(output->commit());
    return std::vector<Addend>{{kPredicted, static_cast<double>(examples)},
                               {kNotPredicted, static_cast<double>(bad_lines)}};
  }));
  const std::vector<double> sums = TRY(worker.tally(kPredictPool, {}, 0, kPredictionPlaces));
  predictions.examples = static_cast<uint64_t>(sums[kPredicted]);
  predictions.bad_lines = static_cast<uint64_t>(sums[kNotPredicted]);
  if (predictions.examples == 0) return no_examples("validation_data", predictions.bad_lines);
  return predictions;
}

}  // namespace pscloud

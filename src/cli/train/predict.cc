#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "base/json.h"
#include "cli/train/scoring.h"
#include "cli/verb.h"
#include "learn/prediction.h"

namespace pscloud {
namespace {

constexpr const char* kPredictAbout = R"(Reads a config as `pscloud evaluate` does, and writes for each example of
validation_data the chance that its label is 1, as the model has it:

  pscloud predict clicks_test.conf --out predictions

OUT-0 has those of the first file, OUT-1 those of the second, and so on, a line
for each line that is not empty, or for each record: nan if it is no example.
With --strict such a line ends the run.

Workers share the files, each a whole one; with --servers 2 --workers 2 they are
processes of their own, with --on they run on a cluster, as those of
`pscloud train` do. OUT is then as the workers see it.)";

struct PredictFlags {
  ScoringFlags scoring;
  std::string out;
  bool raw = false;
};

// Between processes.
std::string predictions_text(const Predictions& predictions) {
  return fmt::format("{} {} {} {}", predictions.files, predictions.weights, predictions.examples,
                     predictions.bad_lines);
}

Result<Predictions> read_predictions(const std::string& text) {
  Predictions predictions;
  TRY(read_numbers(text, predictions.files, predictions.weights, predictions.examples, predictions.bad_lines));
  return predictions;
}

void print_predictions(const Predictions& predictions, const std::string& out, bool json) {
  if (json) {
    JsonWriter writer;
    writer.begin_object().field("files", predictions.files).field("weights", predictions.weights);
    writer.field("examples", predictions.examples).field("bad_lines", predictions.bad_lines).end_object();
    fmt::print("{}\n", writer.text());
    return;
  }
  fmt::print("{} predictions in {}-*\n", predictions.examples, out);
  if (predictions.bad_lines > 0) fmt::print("{} bad lines have nan instead\n", predictions.bad_lines);
}

int run_predict(const PredictFlags& flags) {
  Scoring scoring;
  scoring.words = {"predict", "--out", flags.out};
  if (flags.raw) scoring.words.emplace_back("--raw");
  scoring.check = check_prediction;
  scoring.work = [&](Worker& worker, FileStore& files, const EvaluationSettings& settings,
                     const ShowReading& show) -> Result<std::string> {
    return predictions_text(TRY(predict(worker, files, settings, flags.out, flags.raw, show)));
  };
  scoring.print = [&](const std::string& result) -> Result<> {
    print_predictions(TRY(read_predictions(result)), flags.out, flags.scoring.json);
    return {};
  };
  return run_scoring(flags.scoring, scoring);
}

}  // namespace

void add_predict(CLI::App& verb, Action& action) {
  const auto flags = std::make_shared<PredictFlags>();
  add_scoring_flags(verb, flags->scoring, "the file that says which model and which examples");
  verb.add_option("--out", flags->out, "what the names of the files begin with")->type_name("OUT")->required();
  verb.add_flag("--raw", flags->raw, "the score itself instead of 1 / (1 + exp(-score))");
  verb.footer(kPredictAbout);
  verb.callback([flags, &action] { action = [flags] { return run_predict(*flags); }; });
}

}  // namespace pscloud

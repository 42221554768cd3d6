#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "base/json.h"
#include "cli/train/scoring.h"
#include "cli/verb.h"
#include "learn/evaluation.h"

namespace pscloud {
namespace {

constexpr const char* kEvaluateAbout = R"(Scores examples by a model and says how well that went:

  validation_data { format: TEXT text: LIBSVM file: "data/test.*" }
  model_input { format: TEXT file: "model/clicks_S.*" }

  pscloud evaluate clicks_test.conf                           in this process
  pscloud evaluate clicks_test.conf --servers 2 --workers 2   in others
  pscloud evaluate clicks_test.conf --on cluster.json --servers 2 --workers 8

auc is the chance that a positive example has a higher score than a negative
one; accuracy the share of scores with the sign of the label; logloss the mean
of -ln(p), p being the chance that the model gave to what happened.

With --on it runs on a cluster, as `pscloud train` does: the config goes along,
and the files that it names are as the workers see them.)";

// Between processes.
std::string evaluation_text(const Evaluation& evaluation) {
  const Scored& scored = evaluation.scored;
  return fmt::format("{} {} {} {} {} {} {} {} {}", evaluation.model_files, evaluation.weights, evaluation.embeddings,
                     evaluation.data_files, scored.examples, scored.bad_lines, scored.auc, scored.accuracy,
                     scored.logloss);
}

Result<Evaluation> read_evaluation(const std::string& text) {
  Evaluation evaluation;
  Scored& scored = evaluation.scored;
  TRY(read_numbers(text, evaluation.model_files, evaluation.weights, evaluation.embeddings, evaluation.data_files,
                   scored.examples, scored.bad_lines, scored.auc, scored.accuracy, scored.logloss));
  return evaluation;
}

void print_evaluation(const Evaluation& evaluation, bool json) {
  const Scored& scored = evaluation.scored;
  if (json) {
    JsonWriter writer;
    writer.begin_object().field("model_files", evaluation.model_files).field("weights", evaluation.weights);
    if (evaluation.embeddings > 0) writer.field("embeddings", evaluation.embeddings);
    writer.field("data_files", evaluation.data_files).field("examples", scored.examples);
    writer.field("bad_lines", scored.bad_lines).field("auc", scored.auc);
    writer.field("accuracy", scored.accuracy).field("logloss", scored.logloss).end_object();
    fmt::print("{}\n", writer.text());
    return;
  }
  const std::string embedded =
      evaluation.embeddings > 0 ? fmt::format(", {} with an embedding", evaluation.embeddings) : "";
  fmt::print("find {} model files\nload {} model entries{}\nfind {} data files\nload {} examples\n",
             evaluation.model_files, evaluation.weights, embedded, evaluation.data_files, scored.examples);
  if (scored.bad_lines > 0) fmt::print("{} bad lines were left out\n", scored.bad_lines);
  fmt::print("auc: {:.6f}\naccuracy: {:.6f}\nlogloss: {:.6f}\n", scored.auc, scored.accuracy, scored.logloss);
}

int run_evaluate(const ScoringFlags& flags) {
  Scoring scoring;
  scoring.words = {"evaluate"};
  scoring.check = [](const EvaluationSettings&) { return Result<>(); };
  scoring.work = [](Worker& worker, FileStore& files, const EvaluationSettings& settings,
                    const ShowReading& show) -> Result<std::string> {
    return evaluation_text(TRY(evaluate(worker, files, settings, show)));
  };
  scoring.print = [&](const std::string& result) -> Result<> {
    print_evaluation(TRY(read_evaluation(result)), flags.json);
    return {};
  };
  return run_scoring(flags, scoring);
}

}  // namespace

void add_evaluate(CLI::App& verb, Action& action) {
  const auto flags = std::make_shared<ScoringFlags>();
  add_scoring_flags(verb, *flags, "the file that says what to evaluate");
  verb.footer(kEvaluateAbout);
  verb.callback([flags, &action] { action = [flags] { return run_evaluate(*flags); }; });
}

}  // namespace pscloud

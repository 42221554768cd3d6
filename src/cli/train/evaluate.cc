#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/log.h"
#include "cli/exit_code.h"
#include "cli/interruption.h"
#include "cli/local/local_workers.h"
#include "cli/train/evaluation_flags.h"
#include "cli/train/train_report.h"
#include "cli/verb.h"
#include "learn/evaluation.h"

namespace pscloud {
namespace {

constexpr const char* kEvaluateAbout = R"(Scores examples by a model and says how well that went:

  validation_data { format: TEXT text: LIBSVM file: "data/test.*" }
  model_input { format: TEXT file: "model/clicks_S.*" }

  pscloud evaluate clicks_test.conf

auc is the chance that a positive example has a higher score than a negative
one; accuracy the share of scores with the sign of the label; logloss the mean
of -ln(p), p being the chance that the model gave to what happened.)";

struct EvaluateCommand {
  ConfigFlags config;
  int threads = 0;
  bool json = false;
};

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

Result<Evaluation> evaluate_here(const EvaluateCommand& command, const Cancelled& cancelled) {
  const EvaluationSettings settings = TRY(read_evaluation_settings(command.config));
  const auto store = make_file_store(cancelled);
  WatchedStore files = until_cancelled(*store, cancelled);
  ReadReporter reporter(command.json);
  const ShowReading show = [&](const ReadProgress& progress) { reporter.show(progress); };
  return run_local_workers<Evaluation>(command.threads > 0 ? command.threads : all_cores(), cancelled,
                                       [&](Worker& worker) { return evaluate(worker, files, settings, show); });
}

int run_evaluate(const EvaluateCommand& command) {
  set_log_level(LogLevel::kWarning);
  const Interruption interruption;
  const auto evaluation = evaluate_here(command, interruption.cancelled());
  if (interruption.happened()) return fail_interrupted();
  if (!evaluation) return fail(evaluation.error());
  print_evaluation(*evaluation, command.json);
  return kExitDone;
}

}  // namespace

void add_evaluate(CLI::App& verb, Action& action) {
  const auto command = std::make_shared<EvaluateCommand>();
  add_config_flags(verb, command->config, "the file that says what to evaluate");
  verb.add_option("--threads", command->threads, "[all cores]")->type_name("N")->check(CLI::PositiveNumber);
  verb.add_flag("--json", command->json, "for programs");
  verb.footer(kEvaluateAbout);
  verb.callback([command, &action] { action = [command] { return run_evaluate(*command); }; });
}

}  // namespace pscloud

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
#include "learn/prediction.h"

namespace pscloud {
namespace {

constexpr const char* kPredictAbout = R"(Reads a config as `pscloud evaluate` does, and writes for each example of
validation_data the chance that its label is 1, as the model has it:

  pscloud predict clicks_test.conf --out predictions

OUT-0 has those of the first file, OUT-1 those of the second, and so on, a line
for each example. A line that is no example has none; with --strict it ends
the run.)";

struct PredictCommand {
  ConfigFlags config;
  std::string out;
  int threads = 0;
  bool raw = false;
  bool json = false;
};

Result<Predictions> predict_here(const PredictCommand& command, const Cancelled& cancelled) {
  const EvaluationSettings settings = TRY(read_evaluation_settings(command.config));
  const auto store = make_file_store(cancelled);
  WatchedStore files = until_cancelled(*store, cancelled);
  ReadReporter reporter(command.json);
  const ShowReading show = [&](const ReadProgress& progress) { reporter.show(progress); };
  return run_local_workers<Predictions>(
      command.threads > 0 ? command.threads : all_cores(), cancelled,
      [&](Worker& worker) { return predict(worker, files, settings, command.out, command.raw, show); });
}

int run_predict(const PredictCommand& command) {
  set_log_level(LogLevel::kWarning);
  const Interruption interruption;
  const auto predictions = predict_here(command, interruption.cancelled());
  if (interruption.happened()) return fail_interrupted();
  if (!predictions) return fail(predictions.error());
  if (command.json) {
    JsonWriter json;
    json.begin_object().field("files", predictions->files).field("weights", predictions->weights);
    json.field("examples", predictions->examples).field("bad_lines", predictions->bad_lines).end_object();
    fmt::print("{}\n", json.text());
    return kExitDone;
  }
  fmt::print("{} predictions in {}-*\n", predictions->examples, command.out);
  if (predictions->bad_lines > 0) fmt::print("{} bad lines were left out\n", predictions->bad_lines);
  return kExitDone;
}

}  // namespace

void add_predict(CLI::App& verb, Action& action) {
  const auto command = std::make_shared<PredictCommand>();
  add_config_flags(verb, command->config, "the file that says which model and which examples");
  verb.add_option("--out", command->out, "what the names of the files begin with")->type_name("OUT")->required();
  verb.add_flag("--raw", command->raw, "the score itself instead of 1 / (1 + exp(-score))");
  verb.add_option("--threads", command->threads, "[all cores]")->type_name("N")->check(CLI::PositiveNumber);
  verb.add_flag("--json", command->json, "for programs");
  verb.footer(kPredictAbout);
  verb.callback([command, &action] { action = [command] { return run_predict(*command); }; });
}

}  // namespace pscloud

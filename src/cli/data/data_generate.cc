#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <memory>
#include <string>

#include "base/json.h"
#include "cli/data/data_verb.h"
#include "cli/exit_code.h"
#include "cli/interruption.h"
#include "cli/progress.h"
#include "data/click_log.h"
#include "data/text_writer.h"
#include "io/file_store.h"
#include "learn/data_settings.h"
#include "learn/score_summary.h"

namespace pscloud {
namespace {

constexpr const char* kGenerateAbout = R"(Makes up a click log. Who clicks is drawn by a logistic model whose weights
--model-seed decides, so that the best possible AUC and logloss are known; they
are told at the end. Logs of one model with other seeds are its test data:

  pscloud data generate data/train --examples 1e6
  pscloud data generate data/test --examples 1e5 --seed 2

With --interactions N the model is a factorization machine: to the score each
pair of categories adds the product of their hidden vectors, of N numbers each.

Each example has 13 counts and 26 categories, of which common ones come much
more often (Zipf). Formats without values have no counts. Files are OUT-0,
OUT-1, ...)";

struct GenerateCommand {
  std::string out;
  std::string format = "LIBSVM";
  double examples = 100000;
  double keys = 1e6;
  double zipf = 1.1;
  int files = 1;
  uint32_t interactions = 0;
  double interaction_strength = 1.5;
  uint64_t seed = 1;
  uint64_t model_seed = 1;
  bool json = false;
};

constexpr size_t kRowsAtATime = 1000;

Result<ScoreSummary> generate(const GenerateCommand& command, const Interruption& interruption) {
  const ExampleFormat format = TRY(example_format_named(command.format));
  ClickLog::Options options{.keys = static_cast<uint64_t>(command.keys),
                            .zipf = command.zipf,
                            .interactions = command.interactions,
                            .interaction_strength = command.interaction_strength,
                            .model_seed = command.model_seed,
                            .seed = command.seed};
  const bool values = format == ExampleFormat::kLibsvm || format == ExampleFormat::kVw ||
                      format == ExampleFormat::kSparse || format == ExampleFormat::kCriteo ||
                      format == ExampleFormat::kProto;
  if (!values) options.counts = 0;
  ClickLog log(options);
  ScoreSummary best;
  const auto store = make_file_store([&] { return interruption.happened(); });
  const auto examples = static_cast<uint64_t>(command.examples);
  ProgressLine progress;
  RowBlock block;
  std::string text;
  std::vector<float> scores;
  uint64_t made = 0;
  for (int file = 0; file < command.files; ++file) {
    const auto output = TRY(store->create(fmt::format("{}-{}", command.out, file)));
    const uint64_t end = examples * (file + 1) / command.files;
    while (made < end) {
      if (interruption.happened()) return job_failed("interrupted");
      block.clear();
      scores.clear();
      text.clear();
      for (size_t i = 0; i < kRowsAtATime && made + i < end; ++i) scores.push_back(log.next(block));
      if (!values) block.values.clear();
      TRY(append_text(format, slice_of(block, 0, block.rows()), made, text));
      TRY(output->write(text));
      best.add(block.labels, scores);
      made += block.rows();
      if (made % 100000 == 0) progress.show(fmt::format("{} of {} examples", made, examples));
    }
    TRY(output->commit());
  }
  return best;
}

int run_generate(const GenerateCommand& command) {
  const Interruption interruption;
  const auto best = generate(command, interruption);
  if (interruption.happened()) return fail_interrupted();
  if (!best) return fail(best.error());
  if (command.json) {
    JsonWriter json;
    json.begin_object().field("examples", best->examples()).field("files", command.files);
    json.field("best_auc", best->auc()).field("best_accuracy", best->accuracy());
    json.field("best_logloss", best->logloss()).end_object();
    fmt::print("{}\n", json.text());
  } else {
    fmt::print("{} examples in {} file{} {}-*; no model can do better than auc {:.4f}, logloss {:.4f}\n",
               best->examples(), command.files, command.files == 1 ? "" : "s", command.out, best->auc(),
               best->logloss());
  }
  return kExitDone;
}

}  // namespace

void add_data_generate(CLI::App& verb, Action& action) {
  const auto command = std::make_shared<GenerateCommand>();
  verb.add_option("out", command->out, "what the names of the files begin with")->type_name("OUT")->required();
  verb.add_option("--examples", command->examples, "[1e5]")->type_name("N")->check(CLI::Range(1.0, 1e12));
  verb.add_option("--format", command->format,
                  "LIBSVM, VW, SPARSE, SPARSE_BINARY, ADFEA, TERAFEA, CRITEO or PROTO [LIBSVM]")
      ->type_name("NAME");
  verb.add_option("--keys", command->keys, "different categories [1e6]")->type_name("N")->check(CLI::Range(26.0, 1e15));
  verb.add_option("--zipf", command->zipf, "how much more often common ones come [1.1]")
      ->type_name("S")
      ->check(CLI::Range(0.0, 10.0));
  verb.add_option("--files", command->files, "[1]")->type_name("N")->check(CLI::Range(1, 100000));
  verb.add_option("--interactions", command->interactions, "of pairs of categories, by vectors of so many numbers [0]")
      ->type_name("N")
      ->check(CLI::Range(0, 10000));
  verb.add_option("--interaction-strength", command->interaction_strength,
                  "standard deviation of what they add to scores [1.5]")
      ->type_name("S")
      ->check(CLI::Range(0.0, 1000.0));
  verb.add_option("--seed", command->seed, "of the examples [1]")->type_name("N");
  verb.add_option("--model-seed", command->model_seed, "of the weights [1]")->type_name("N");
  verb.add_flag("--json", command->json, "for programs");
  verb.footer(kGenerateAbout);
  verb.callback([command, &action] { action = [command] { return run_generate(*command); }; });
}

}  // namespace pscloud

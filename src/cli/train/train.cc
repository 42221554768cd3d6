#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/log.h"
#include "cli/exit_code.h"
#include "cli/interruption.h"
#include "cli/train/place_flags.h"
#include "cli/train/train_dry_run.h"
#include "cli/train/train_job.h"
#include "cli/train/train_launch.h"
#include "cli/train/train_report.h"
#include "cli/verb.h"
#include "io/tensorboard.h"
#include "pscloud/environment.h"

namespace pscloud {
namespace {

constexpr const char* kTrainAbout = R"(Trains a sparse linear model, or a factorization machine (examples/fm), on text
files, as a config says (examples/linear):

  training_data { format: TEXT text: LIBSVM file: "data/part.*" }
  model_output { format: TEXT file: "model/clicks" }
  loss { type: LOGIT }
  penalty { type: L1 lambda: 1 }
  learning_rate { type: DECAY alpha: 0.1 beta: 1 }
  async_sgd { algo: FTRL minibatch: 1000 }

  pscloud train clicks.conf                           all in this process
  pscloud train clicks.conf --servers 2 --workers 2   processes of their own
  pscloud train clicks.conf --on cluster.json --servers 2 --workers 8
  pscloud train clicks.conf --set async_sgd.num_data_pass=3

The table on stdout has a line each async_sgd.report_interval seconds: the
means of loss, AUC and accuracy are over all examples so far, each scored
before the model learned from it. |w|_0 counts the weights that are not zero,
|V|_0 the embeddings of a factorization machine;
updt ratio is how much one minibatch changed its weights, as a share of them.

A line that is no example is counted, left out, and shown if it is among the
first. If a worker dies, the others do its part again, and say so.

Further passes over the data (async_sgd.num_data_pass) read no text: what the
first has parsed is kept, in a temporary place that is gone at the end, or
with async_sgd.local_cache for the next run, too (docs/block-cache.md).

With checkpoint { folder: "ck" } in the config the whole run is kept on disk
every 60 seconds. Whatever happens to it then, --resume goes on from there, on
as many servers and workers as you like (docs/checkpoint.md). A model_input is
the model to begin with.

With --on it runs on a cluster (docs/launch.md). The config goes along; the
files that it names are as the workers see them: in S3, in a shared folder, or
at the same place everywhere.

With PSCLOUD_ROLE=worker in the environment it takes part in a job of
schedulers and servers that run elsewhere (docs/node-environment.md).)";

struct TrainCommand {
  TrainJob job;
  PlaceFlags place;
  std::string tensorboard;
  bool dry_run = false;
  bool quiet = false;
  bool json = false;
};

template <class Progress>
void write_validation(JsonWriter& writer, const Progress& progress) {
  writer.key("validation").begin_object().field("auc", progress.validation_auc);
  writer.field("accuracy", progress.validation_accuracy).field("logloss", progress.validation_logloss).end_object();
}

void print_summary(const OnlineProgress& progress, bool json) {
  const double rate = progress.examples_per_s();
  if (!json) {
    fmt::print("{} examples in {:.1f} s, {:.0f} a second; {} weights are not zero{}\n",
               progress.examples - progress.resumed, progress.seconds, rate, progress.nonzero,
               progress.dim > 0 ? fmt::format(", {} embeddings", progress.embeddings) : "");
    if (progress.resumed > 0) fmt::print("{} examples had been done before it was resumed\n", progress.resumed);
    if (progress.stopped > 0) {
      fmt::print("stopped after pass {}: it got no better on the validation data\n", progress.stopped);
    }
    if (progress.repeated_parts > 0) {
      // At least: what a worker that died had trained on since its last report nobody knows.
      fmt::print("{} parts of the data were done again, for who had them died or was slow: at least {} examples\n",
                 progress.repeated_parts, progress.repeated);
    }
    if (progress.bad_lines > 0) fmt::print("{} bad lines were left out\n", progress.bad_lines);
    return;
  }
  JsonWriter writer;
  writer.begin_object().field("examples", progress.examples).field("repeated", progress.repeated);
  if (progress.repeated_parts > 0) writer.field("repeated_parts", progress.repeated_parts);
  writer.field("seconds", progress.seconds).key("pass_seconds").begin_array();
  for (const double seconds : progress.pass_seconds) writer.value(seconds);
  writer.end_array().field("examples_per_s", rate);
  writer.field("loss", progress.mean_loss()).field("auc", progress.mean_auc());
  writer.field("accuracy", progress.accuracy()).field("nonzero", progress.nonzero);
  if (progress.dim > 0) writer.field("embeddings", progress.embeddings);
  writer.field("bad_lines", progress.bad_lines);
  if (progress.resumed > 0) writer.field("resumed", progress.resumed);
  if (progress.stopped > 0) writer.field("stopped_after_pass", progress.stopped);
  if (progress.validated > 0) write_validation(writer, progress);
  writer.end_object();
  fmt::print("{}\n", writer.text());
}

void print_summary(const BatchProgress& progress, bool json) {
  if (!json) {
    fmt::print("{} iterations over {} examples in {:.1f} s; {} weights are not zero\n", progress.iteration,
               progress.examples, progress.seconds, progress.nonzero);
    if (progress.bad_lines > 0) fmt::print("{} bad lines were left out\n", progress.bad_lines);
    return;
  }
  JsonWriter writer;
  writer.begin_object().field("examples", progress.examples).field("seconds", progress.seconds);
  writer.field("iterations", progress.iteration).field("converged", progress.converged);
  writer.field("objective", progress.objective).field("relative", progress.relative);
  writer.field("keys", progress.keys).field("blocks", progress.blocks).field("active", progress.active);
  writer.field("nonzero", progress.nonzero).field("bad_lines", progress.bad_lines);
  if (progress.stopped) writer.field("stopped_after_iteration", progress.iteration);
  if (progress.validated) write_validation(writer, progress);
  writer.end_object();
  fmt::print("{}\n", writer.text());
}

// A worker that `pscloud train` has started: it tells its parent.
int serve_as_worker(const TrainCommand& command, const NodeOptions& options) {
  WorkerVoice voice;
  const auto run = [&]() -> Result<std::string> {
    const TrainSettings settings = TRY(train_settings(command.job));
    const ShowProgress show = [&](const TrainProgress& progress) { voice.progress(encode_progress(progress)); };
    return encode_progress(
        TRY(join_train_job(settings, options, command.job.counts.threads, show, [] { return false; })));
  };
  return voice.end(run());
}

// On a cluster: this process starts the others there and shows what one of them says.
int launch_train(const TrainCommand& command, const TrainSettings& settings) {
  if (command.place.sees_our_files()) {
    if (const auto there = check_train_files(command.job.config, settings, [] { return false; }); !there)
      return fail(there.error());
  }
  auto job = train_launch_job(command.job, {command.tensorboard, command.quiet, command.json}, command.place.job);
  if (!job) return fail(job.error());
  return run_launched(*std::move(job), command.place.launch, command.job.config, command.json);
}

int run_train(TrainCommand command) {
  const Environment environment = process_environment();
  NodeOptions options;
  if (auto applied = apply_environment(environment, options); !applied) return fail(applied.error());
  if (const auto code = settle_place(command.place, "train")) return *code;
  command.job.counts = command.place.counts;
  // What happens to nodes that this command has started is its own business.
  const bool joins = environment("PSCLOUD_ROLE").has_value() || environment("DMLC_ROLE").has_value();
  if (command.place.as_worker || !joins) set_log_level(LogLevel::kWarning);
  if (command.place.as_worker) return serve_as_worker(command, options);

  const auto settings = train_settings(command.job);
  if (!settings) return fail(settings.error());
  for (const std::string& one : joins ? std::vector<std::string>() : warnings_of(*settings)) {
    log_warning("{}: {}", place_in_config(command.job.config, one), one);
  }
  if (command.dry_run) return show_dry_run(command.job, *settings, command.json);
  const bool keeps_model = std::visit([](const auto& one) { return one.model.has_value(); }, *settings);
  if (!keeps_model && !joins) log_warning("{}: there is no model_output: no model is kept", command.job.config.file);
  if (command.place.launches()) return launch_train(command, *settings);
  if (joins && options.role != Role::kWorker) {
    return fail(invalid("the environment says that this is a {}: start it by `pscloud node`", role_name(options.role)));
  }
  const Interruption interruption(environment(kNoticeVariable).value_or(""));
  // Or there is nothing to start for, and no file to begin.
  const auto there = joins ? check_model_output(*settings, interruption.cancelled())
                           : check_train_files(command.job.config, *settings, interruption.cancelled());
  if (interruption.happened()) return fail_interrupted();
  if (!there) return fail(there.error());
  std::optional<TensorBoardWriter> tensorboard;
  if (!command.tensorboard.empty()) {
    auto writer = open_tensorboard(command.tensorboard);
    if (!writer) return fail(writer.error());
    tensorboard = *std::move(writer);
  }
  using MetricsLines = TrainReporter::MetricsLines;
  const bool says_metrics = environment(kMetricsLinesVariable).value_or("") == "1";
  const bool is_first = options.rank <= 0;
  TrainReporter reporter(*settings, command.quiet || command.json, std::move(tensorboard),
                         !says_metrics ? MetricsLines::kNone
                         : is_first    ? MetricsLines::kAll
                                       : MetricsLines::kShown);
  const ShowProgress show = [&](const TrainProgress& progress) { reporter.show(progress); };
  const auto run = [&]() -> Result<TrainProgress> {
    if (!joins) return run_train_job(command.job, *settings, show, interruption.cancelled());
    return join_train_job(*settings, options, command.job.counts.threads, show, interruption.cancelled(),
                          [&] { return interruption.leaving(); });
  };
  const auto outcome = run();
  outcome ? reporter.end(*outcome) : reporter.give_up();
  if (interruption.happened()) return fail_interrupted();
  if (!outcome && interruption.leaving()) {
    fail(outcome.error());
    return kExitInterrupted;  // whatever the error: it was told to end
  }
  if (!outcome) return fail(outcome.error());
  std::visit([&](const auto& progress) { print_summary(progress, command.json); }, *outcome);
  return kExitDone;
}

}  // namespace

void add_train(CLI::App& verb, Action& action) {
  const auto command = std::make_shared<TrainCommand>();
  add_config_flags(verb, command->job.config, "the file that says what to train");
  verb.get_option("config")->envname(kConfigVariable);
  add_place_flags(verb, command->place, "train");
  verb.add_option("--tensorboard", command->tensorboard, "write the table for TensorBoard too")->type_name("DIR");
  verb.add_flag("--resume", command->job.resume, "go on from the last checkpoint");
  verb.add_flag("--dry-run", command->dry_run, "only say what it would read, start and need");
  verb.add_flag("--quiet", command->quiet, "no table");
  verb.add_flag("--json", command->json, "for programs");
  verb.footer(kTrainAbout);
  verb.callback([command, &action] { action = [command] { return run_train(*command); }; });
}

}  // namespace pscloud

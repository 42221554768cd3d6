#include "cli/train/scoring.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iterator>

#include "base/log.h"
#include "cli/exit_code.h"
#include "cli/interruption.h"
#include "cli/local/local_workers.h"
#include "cli/train/evaluation_flags.h"
#include "cli/train/train_launch.h"
#include "cli/train/train_report.h"
#include "pscloud/environment.h"

namespace pscloud {
namespace {

using ScoringWork = std::function<Result<std::string>(Worker&)>;

// The verb again, for a worker in another process, without the config.
std::vector<std::string> worker_words(const Scoring& scoring, const ScoringFlags& flags, const char* how) {
  std::vector<std::string> words = scoring.words;
  words.insert(words.end(), {how, "--threads", std::to_string(flags.place.counts.threads)});
  return words;
}

// A worker that this verb has started: it tells its parent.
int score_as_worker(const ScoringFlags& flags, const Scoring& scoring, const NodeOptions& options) {
  WorkerVoice voice;
  const auto run = [&]() -> Result<std::string> {
    const EvaluationSettings settings = TRY(read_evaluation_settings(flags.config));
    const auto files = make_file_store();
    const ShowReading show = [&](const ReadProgress& progress) { voice.progress(encode_reading(progress)); };
    const ScoringWork work = [&](Worker& worker) { return scoring.work(worker, *files, settings, show); };
    return join_workers(options, flags.place.counts.threads, work);
  };
  return voice.end(run());
}

int launch_scoring(const ScoringFlags& flags, const Scoring& scoring, const EvaluationSettings& settings) {
  if (flags.place.sees_our_files()) {
    const auto there = check_evaluation_files(flags.config, settings, [] { return false; });
    if (!there) return fail(there.error());
  }
  std::vector<std::string> command = worker_words(scoring, flags, "--join");
  command.insert(command.begin(), "pscloud");
  if (flags.config.strict) command.emplace_back("--strict");
  if (flags.json) command.emplace_back("--json");
  const WorkerCounts& counts = flags.place.counts;
  auto job = launch_job(flags.config, counts, std::vector(counts.workers, command), flags.place.job);
  if (!job) return fail(job.error());
  return run_launched(*std::move(job), flags.place.launch, flags.config, flags.json);
}

// With servers and workers in processes of their own.
Result<std::string> score_in_processes(const ScoringFlags& flags, const Scoring& scoring, const ShowReading& show,
                                       const Cancelled& cancelled) {
  std::vector<std::string> words = worker_words(scoring, flags, "--as-worker");
  std::ranges::copy(words_of(flags.config), std::back_inserter(words));
  const auto show_text = [&](const std::string& text) -> Result<> {
    show(TRY(decode_reading(text)));
    return {};
  };
  return run_worker_processes(flags.place.counts, words, show_text, cancelled);
}

}  // namespace

void add_scoring_flags(CLI::App& verb, ScoringFlags& flags, const char* about) {
  add_config_flags(verb, flags.config, about);
  verb.get_option("config")->envname(kConfigVariable);
  add_place_flags(verb, flags.place, "score");
  verb.add_flag("--join", flags.join, "as a worker of the job that the environment names");
  verb.add_flag("--json", flags.json, "for programs");
}

int run_scoring(ScoringFlags flags, const Scoring& scoring) {
  if (const auto code = settle_place(flags.place, scoring.words.front())) return *code;
  NodeOptions options;
  if (flags.join && flags.place.counts.servers > 0) {
    return fail_usage("--join takes part in a job that runs already: it goes without --servers and --on",
                      fmt::format("`pscloud {} --help` tells more", scoring.words.front()));
  }
  if (flags.join || flags.place.as_worker) {
    if (const auto applied = apply_environment(process_environment(), options); !applied) return fail(applied.error());
    if (options.role != Role::kWorker) {
      return fail(
          invalid("the environment says that this is a {}: start it by `pscloud node`", role_name(options.role)));
    }
  }
  if (!flags.join) set_log_level(LogLevel::kWarning);
  if (flags.place.as_worker) return score_as_worker(flags, scoring, options);
  const auto settings = read_evaluation_settings(flags.config);
  if (!settings) return fail(settings.error());
  if (const auto possible = scoring.check(*settings); !possible) return fail(possible.error());
  if (flags.place.launches()) return launch_scoring(flags, scoring, *settings);

  const Interruption interruption;
  const Cancelled cancelled = interruption.cancelled();
  ReadReporter reporter(flags.json);
  const ShowReading show = [&](const ReadProgress& progress) { reporter.show(progress); };
  const auto run = [&]() -> Result<std::string> {
    TRY(check_evaluation_files(flags.config, *settings, cancelled));
    const int threads = flags.place.counts.threads;
    if (!flags.join && flags.place.counts.servers > 0) return score_in_processes(flags, scoring, show, cancelled);
    const auto store = make_file_store(cancelled);
    WatchedStore files = until_cancelled(*store, cancelled);
    const ScoringWork work = [&](Worker& worker) { return scoring.work(worker, files, *settings, show); };
    return flags.join ? join_workers(options, threads, work) : run_local_workers(threads, cancelled, work);
  };
  const auto outcome = run();
  reporter.end();
  if (interruption.happened()) return fail_interrupted();
  if (!outcome) return fail(outcome.error());
  const auto printed = scoring.print(*outcome);
  return printed ? kExitDone : fail(printed.error());
}

}  // namespace pscloud

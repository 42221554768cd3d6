#include "cli/train/train_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <sstream>
#include <vector>

#include "base/clock.h"
#include "base/log.h"

namespace pscloud {
namespace {

// 1234567 as "1.2M".
std::string short_count(double count) {
  for (const auto& [size, letter] : {std::pair{1e9, 'G'}, {1e6, 'M'}, {1e3, 'k'}}) {
    if (count >= size) return fmt::format("{:.1f}{}", count / size, letter);
  }
  return fmt::format("{:.0f}", count);
}

// Rate, share done and time left, of examples that come from files.
std::string examples_text(double examples, double rate, uint64_t bytes, uint64_t bytes_all) {
  std::string text = fmt::format("{} examples, {}/s", short_count(examples), short_count(rate));
  if (bytes == 0 || bytes_all == 0) return text;
  const double share = std::min(1.0, static_cast<double>(bytes) / static_cast<double>(bytes_all));
  text += fmt::format(", {:.0f}% done", share * 100);
  // By the rate, not by the time so far: what is done may have been done before this run was resumed.
  if (rate > 0) text += fmt::format(", {:.0f} s left", examples * (1 - share) / share / rate);
  return text;
}

constexpr const char* kBatchHeader =
    "     |        training        |  sparsity |      KKT filter     |    time (sec.)\n"
    "iter |  objective    relative |     |w|_0 | threshold  #activet |(app:min max) total\n"
    " ----+------------------------+-----------+---------------------+-----------------\n";

template <class Progress>
std::vector<TensorBoardScalar> validation_scalars(const Progress& progress) {
  return {{"validation/auc", progress.validation_auc},
          {"validation/accuracy", progress.validation_accuracy},
          {"validation/logloss", progress.validation_logloss}};
}

template <class Progress>
std::string validation_text(const Progress& progress) {
  return fmt::format("auc {:.4f}, accuracy {:.4f}, logloss {:.4f}", progress.validation_auc,
                     progress.validation_accuracy, progress.validation_logloss);
}

std::vector<TensorBoardScalar> scalars_of(const OnlineProgress& progress) {
  std::vector<TensorBoardScalar> scalars = {
      {"train/loss", progress.mean_loss()},
      {"train/auc", progress.mean_auc()},
      {"train/accuracy", progress.accuracy()},
      {"train/examples_per_s", progress.examples_per_s()},
      {"train/nonzero_weights", static_cast<double>(progress.nonzero)},
  };
  if (progress.minibatches > 0) {
    const auto minibatches = static_cast<double>(progress.minibatches);
    scalars.push_back({"train/pull_ms", 1e3 * progress.pull_seconds / minibatches});
    scalars.push_back({"train/push_ms", 1e3 * progress.push_seconds / minibatches});
  }
  if (progress.dim > 0) scalars.push_back({"train/embeddings", static_cast<double>(progress.embeddings)});
  if (progress.validated > 0) std::ranges::move(validation_scalars(progress), std::back_inserter(scalars));
  return scalars;
}

std::vector<TensorBoardScalar> scalars_of(const BatchProgress& progress) {
  if (progress.stage == BatchProgress::Stage::kValidated) return validation_scalars(progress);
  return {{"train/objective", progress.objective},
          {"train/nonzero_weights", static_cast<double>(progress.nonzero)},
          {"train/active_weights", static_cast<double>(progress.active)},
          {"train/iteration_s", progress.stage_seconds}};
}

// The numbers of a line. Streams take neither "inf" nor "nan", which figures of a training that goes wrong may be.
class Words {
 public:
  explicit Words(const std::string& line) : words_(line) {}

  explicit operator bool() const { return good_; }
  Words& operator>>(std::string& word) {
    good_ = good_ && words_ >> word;
    return *this;
  }
  template <class Number>
  Words& operator>>(Number& number) {
    std::string word;
    *this >> word;
    const char* const end = word.data() + word.size();
    const auto read = std::from_chars(word.data(), end, number);
    good_ = good_ && read.ec == std::errc{} && read.ptr == end;
    return *this;
  }
  Words& operator>>(bool& yes) {
    int number = 0;
    *this >> number;
    yes = number != 0;
    return *this;
  }

 private:
  std::istringstream words_;
  bool good_ = true;
};

std::string encode(const ReadProgress& p) {
  return fmt::format("{} {} {} {}", p.seconds, p.examples, p.bytes, p.bytes_all);
}

void decode(Words& words, ReadProgress& p) { words >> p.seconds >> p.examples >> p.bytes >> p.bytes_all; }

std::string encode(const OnlineProgress& p) {
  return fmt::format("online {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {}", p.seconds,
                     p.examples, p.resumed, p.repeated, p.repeated_parts, p.loss, p.auc, p.right, p.bad_lines, p.bytes,
                     p.bytes_all, p.nonzero, p.dim, p.embeddings, p.validated, p.validation_auc, p.validation_accuracy,
                     p.validation_logloss, p.stopped, p.minibatches, p.pull_seconds, p.push_seconds, p.change.change2,
                     p.change.weights2, p.pass_seconds.size(), fmt::join(p.pass_seconds, " "));
}

void decode(Words& words, OnlineProgress& p) {
  words >> p.seconds >> p.examples >> p.resumed >> p.repeated >> p.repeated_parts >> p.loss >> p.auc >> p.right >>
      p.bad_lines >> p.bytes >> p.bytes_all >> p.nonzero >> p.dim >> p.embeddings >> p.validated >> p.validation_auc >>
      p.validation_accuracy >> p.validation_logloss >> p.stopped >> p.minibatches >> p.pull_seconds >> p.push_seconds >>
      p.change.change2 >> p.change.weights2;
  size_t passes = 0;
  words >> passes;
  for (size_t i = 0; words && i < passes; ++i) words >> p.pass_seconds.emplace_back();
}

std::string encode(const BatchProgress& p) {
  return fmt::format("batch {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {}",
                     static_cast<int>(p.stage), p.seconds, p.stage_seconds, encode(p.reading), p.examples, p.bad_lines,
                     p.keys, p.blocks, p.iteration, p.iterated, p.iterated_before, p.iterated_seconds, p.objective,
                     p.relative, p.nonzero, p.threshold, p.active, p.busy_min, p.busy_max,
                     static_cast<int>(p.converged), static_cast<int>(p.validated), p.validation_auc,
                     p.validation_accuracy, p.validation_logloss, static_cast<int>(p.stopped));
}

void decode(Words& words, BatchProgress& p) {
  int stage = 0;
  words >> stage >> p.seconds >> p.stage_seconds;
  decode(words, p.reading);
  words >> p.examples >> p.bad_lines >> p.keys >> p.blocks >> p.iteration >> p.iterated >> p.iterated_before >>
      p.iterated_seconds >> p.objective >> p.relative >> p.nonzero >> p.threshold >> p.active >> p.busy_min >>
      p.busy_max >> p.converged >> p.validated >> p.validation_auc >> p.validation_accuracy >> p.validation_logloss >>
      p.stopped;
  p.stage = static_cast<BatchProgress::Stage>(stage);
}

}  // namespace

Result<TensorBoardWriter> open_tensorboard(const std::string& folder) {
  return TensorBoardWriter::create(folder, unix_s_now());
}

void TrainReporter::write(int64_t step, std::span<const TensorBoardScalar> scalars) {
  if (!tensorboard_) return;
  if (const auto written = tensorboard_->write(unix_s_now(), step, scalars); !written) {
    log_warning("{}; nothing more is written for TensorBoard", written.error().message);
    tensorboard_.reset();
  }
}

void TrainReporter::tell(const OnlineProgress& progress) {
  // The step is the number of examples: workers come and go, these do not.
  write(static_cast<int64_t>(progress.examples), scalars_of(progress));
  if (quiet_) return;
  if (!std::exchange(begun_, true)) fmt::print("{}\n", online_table_header(progress));
  fmt::print("{}\n", online_table_line(progress));
  if (progress.validated > std::exchange(validated_, progress.validated)) {
    fmt::print("{}\n", validation_line(progress));
  }
  std::fflush(stdout);
}

void TrainReporter::tell(const BatchProgress& progress) {
  const bool has_figures =
      progress.stage == BatchProgress::Stage::kIteration || progress.stage == BatchProgress::Stage::kValidated;
  if (has_figures) write(progress.iteration, scalars_of(progress));
  if (quiet_) return;
  fmt::print("{}", batch_lines(progress, std::get<BatchSettings>(settings_)));
  std::fflush(stdout);
}

void TrainReporter::tell(const TrainProgress& progress) {
  if (const auto* const batch = std::get_if<BatchProgress>(&progress)) return tell(*batch);
  tell(std::get<OnlineProgress>(progress));
}

void TrainReporter::say_metrics(const TrainProgress& progress) {
  if (metrics_ == MetricsLines::kNone) return;
  if (const std::string line = metrics_line(progress); !line.empty()) fmt::print("{}\n", line);
  std::fflush(stdout);
}

void TrainReporter::show(const TrainProgress& progress) {
  MutexLock lock(mutex_);
  live_.show("");
  shown_ = true;
  say_metrics(progress);
  tell(progress);
  if (!quiet_) live_.show(live_line(progress, settings_));
}

void TrainReporter::end(const TrainProgress& progress) {
  MutexLock lock(mutex_);
  live_.show("");
  if (shown_ || metrics_ == MetricsLines::kAll) say_metrics(progress);
  tell(progress);
}

void TrainReporter::give_up() {
  MutexLock lock(mutex_);
  live_.show("");
}

void ReadReporter::show(const ReadProgress& progress) {
  if (quiet_) return;
  MutexLock lock(mutex_);
  live_.show(live_line(progress));
}

void ReadReporter::end() {
  if (quiet_) return;
  MutexLock lock(mutex_);
  live_.show("");
}

// Only a factorization machine has the column |V|_0.
std::string online_table_header(const OnlineProgress& progress) {
  return fmt::format(" sec  examples     loss     auc  accuracy     |w|_0{}  updt ratio",
                     progress.dim > 0 ? "     |V|_0" : "");
}

std::string online_table_line(const OnlineProgress& progress) {
  const std::string embeddings =
      progress.dim > 0 ? fmt::format("  {:.2e}", static_cast<double>(progress.embeddings)) : "";
  const auto ratio = progress.update_ratio();
  return fmt::format("{:4d}  {:.2e}  {:.3e}  {:.4f}    {:.4f}  {:.2e}{}    {:>8}",
                     static_cast<int64_t>(progress.seconds), static_cast<double>(progress.examples),
                     progress.mean_loss(), progress.mean_auc(), progress.accuracy(),
                     static_cast<double>(progress.nonzero), embeddings, ratio ? fmt::format("{:.2e}", *ratio) : "-");
}

std::string validation_line(const OnlineProgress& progress) {
  return fmt::format("validation after pass {}: {}", progress.validated, validation_text(progress));
}

std::string live_line(const ReadProgress& progress) {
  const auto examples = static_cast<double>(progress.examples);
  return examples_text(examples, examples / std::max(progress.seconds, 1e-9), progress.bytes, progress.bytes_all);
}

std::string live_line(const TrainProgress& progress, const TrainSettings& settings) {
  if (const auto* const online = std::get_if<OnlineProgress>(&progress)) {
    return examples_text(static_cast<double>(online->examples), online->examples_per_s(), online->bytes,
                         online->bytes_all);
  }
  using Stage = BatchProgress::Stage;
  const auto& batch = std::get<BatchProgress>(progress);
  if (batch.stage == Stage::kLoading) return "loading: " + live_line(batch.reading);
  const bool iterates =
      batch.stage == Stage::kIterating || batch.stage == Stage::kIteration || batch.stage == Stage::kValidated;
  const double here = batch.iterated - batch.iterated_before;
  if (!iterates || here <= 0) return "";
  const double all = std::get<BatchSettings>(settings).iterations;
  const double each = batch.iterated_seconds / here;
  return fmt::format("{:.1f} of at most {:.0f} iterations, {:.2g} s each, {:.0f}% done, at most {:.0f} s left",
                     batch.iterated, all, each, 100 * batch.iterated / all, each * (all - batch.iterated));
}

std::string metrics_line(const TrainProgress& progress) {
  std::string line;
  const auto add = [&](const char* name, double value) {
    if (std::isfinite(value)) line += fmt::format("{}{}={}", line.empty() ? "**metrics_data: " : ",", name, value);
  };
  if (const auto* batch = std::get_if<BatchProgress>(&progress)) {
    if (batch->stage == BatchProgress::Stage::kValidated) {
      add("validation_auc", batch->validation_auc);
      add("validation_logloss", batch->validation_logloss);
    }
    if (batch->stage != BatchProgress::Stage::kIteration) return line;
    add("objective", batch->objective);
    add("relative_objective", batch->relative);
    add("nonzero_weights", static_cast<double>(batch->nonzero));
    add("iteration_s", batch->stage_seconds);
    return line;
  }
  const auto& online = std::get<OnlineProgress>(progress);
  add("loss", online.mean_loss());
  add("auc", online.mean_auc());
  add("accuracy", online.accuracy());
  add("examples", static_cast<double>(online.examples));
  add("examples_per_s", online.examples_per_s());
  add("nonzero_weights", static_cast<double>(online.nonzero));
  if (online.validated > 0) {
    add("validation_auc", online.validation_auc);
    add("validation_logloss", online.validation_logloss);
  }
  return line;
}

std::string encode_reading(const ReadProgress& progress) { return encode(progress); }

Result<ReadProgress> decode_reading(const std::string& line) {
  Words words(line);
  ReadProgress progress;
  decode(words, progress);
  if (!words) return corrupt("a worker said \"{}\"", line);
  return progress;
}

std::string encode_progress(const TrainProgress& progress) {
  return std::visit([](const auto& one) { return encode(one); }, progress);
}

Result<TrainProgress> decode_progress(const std::string& line) {
  Words words(line);
  std::string kind;
  words >> kind;
  TrainProgress progress;
  if (kind == "batch") progress = BatchProgress();
  std::visit([&](auto& one) { decode(words, one); }, progress);
  if (!words) return corrupt("a worker said \"{}\"", line);
  return progress;
}

std::string batch_lines(const BatchProgress& progress, const BatchSettings& settings) {
  switch (progress.stage) {
    case BatchProgress::Stage::kLoading:
    case BatchProgress::Stage::kIterating: return "";
    case BatchProgress::Stage::kLoaded:
      return fmt::format("Loaded {} examples in {:.3g} sec\n", progress.examples, progress.stage_seconds);
    case BatchProgress::Stage::kPrepared: {
      std::string text = fmt::format("Preprocessing is finished in {:.3g} sec\n", progress.stage_seconds);
      if (settings.tail.frequency > 0) {
        text += fmt::format("Features with frequency <= {} are filtered\n", settings.tail.frequency);
      }
      text += fmt::format("Features are partitioned into {} blocks\n", progress.blocks);
      if (!settings.prior_groups.empty()) {
        text += fmt::format("Prior feature groups: {}\n", fmt::join(settings.prior_groups, ", "));
      }
      return text + fmt::format("Maximal allowed delay: {}\n", settings.max_delay) + kBatchHeader;
    }
    case BatchProgress::Stage::kIteration:
      return fmt::format("{:4d} | {:.5e}  {:.3e} |{:10d} | {:.1e} {:11d} |{:6.1f}{:6.1f}{:6.1f}\n", progress.iteration,
                         progress.objective, progress.relative, progress.nonzero, progress.threshold, progress.active,
                         progress.busy_min, progress.busy_max, progress.stage_seconds);
    case BatchProgress::Stage::kValidated:
      return fmt::format("validation after iteration {}: {}\n", progress.iteration, validation_text(progress));
    case BatchProgress::Stage::kEnd: break;
  }
  if (progress.stopped) return "Stopped: it got no better on the validation data\n";
  if (progress.converged) return fmt::format("Stopped: relative objective <= {:g}\n", settings.epsilon);
  return fmt::format("Reached maximal {} data passes\n", settings.iterations);
}

}  // namespace pscloud

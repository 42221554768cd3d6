#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "base/mutex.h"
#include "cli/progress.h"
#include "cli/train/train_job.h"
#include "io/tensorboard.h"

namespace pscloud {

// The lines of progress of online training.
std::string online_table_header(const OnlineProgress& progress);
std::string online_table_line(const OnlineProgress& progress);

// The same of batch training: a few lines before the first iteration, and one after each.
std::string batch_lines(const BatchProgress& progress, const BatchSettings& settings);

// How the model did on the validation data, if it was tried.
std::string validation_line(const OnlineProgress& progress);

// For people who look: rate, share done and time left. Empty while there is nothing to say.
std::string live_line(const ReadProgress& progress);
std::string live_line(const TrainProgress& progress, const TrainSettings& settings);

// For the launcher, "**metrics_data: loss=...,": what it writes to the run's folder (docs/launch.md).
inline constexpr const char* kMetricsLinesVariable = "PSCLOUD_METRICS_LINES";
std::string metrics_line(const TrainProgress& progress);

Result<TensorBoardWriter> open_tensorboard(const std::string& folder);

// Tells a person, and TensorBoard if there is one, how far training is. Thread-safe.
class TrainReporter {
 public:
  // Which lines of figures a process writes: none, those of what it shows, or of the end in any case. Of the workers of
  // a job each knows the end, and one is enough to tell it.
  enum class MetricsLines : uint8_t { kNone, kShown, kAll };

  // `quiet`: no table. `settings` are borrowed.
  TrainReporter(const TrainSettings& settings, bool quiet, std::optional<TensorBoardWriter> tensorboard,
                MetricsLines metrics)
      : settings_(settings),
        quiet_(quiet),
        metrics_(metrics),
        tensorboard_(std::move(tensorboard)),
        live_(lines_elsewhere(settings)) {}

  // While it goes on: a line of the table if it is time for one, and a live one below it if somebody looks.
  void show(const TrainProgress& progress) EXCLUDES(mutex_);
  // The last one.
  void end(const TrainProgress& progress) EXCLUDES(mutex_);
  // There is none: the live line goes away.
  void give_up() EXCLUDES(mutex_);

 private:
  // In a file the table of online training says it all; batch training can be silent for long.
  static ProgressLine::Elsewhere lines_elsewhere(const TrainSettings& settings) {
    const bool is_batch = std::holds_alternative<BatchSettings>(settings);
    return is_batch ? ProgressLine::Elsewhere::kLines : ProgressLine::Elsewhere::kSilent;
  }
  void say_metrics(const TrainProgress& progress) REQUIRES(mutex_);
  void tell(const TrainProgress& progress) REQUIRES(mutex_);
  void tell(const OnlineProgress& progress) REQUIRES(mutex_);
  void tell(const BatchProgress& progress) REQUIRES(mutex_);
  void write(int64_t step, std::span<const TensorBoardScalar> scalars) REQUIRES(mutex_);

  const TrainSettings& settings_;
  const bool quiet_;
  const MetricsLines metrics_;
  Mutex mutex_;
  std::optional<TensorBoardWriter> tensorboard_ GUARDED_BY(mutex_);
  ProgressLine live_ GUARDED_BY(mutex_);
  bool begun_ GUARDED_BY(mutex_) = false;
  bool shown_ GUARDED_BY(mutex_) = false;
  uint32_t validated_ GUARDED_BY(mutex_) = 0;  // the pass of which was told
};

// Tells a person how far a verb is that only reads, and has no table. Thread-safe.
class ReadReporter {
 public:
  explicit ReadReporter(bool quiet) : quiet_(quiet) {}

  void show(const ReadProgress& progress) EXCLUDES(mutex_);
  // The line goes away.
  void end() EXCLUDES(mutex_);

 private:
  const bool quiet_;
  Mutex mutex_;
  ProgressLine live_ GUARDED_BY(mutex_){ProgressLine::Elsewhere::kLines};
};

// Progress between a worker process and the one that started it.
std::string encode_reading(const ReadProgress& progress);
Result<ReadProgress> decode_reading(const std::string& line);
std::string encode_progress(const TrainProgress& progress);
Result<TrainProgress> decode_progress(const std::string& line);

}  // namespace pscloud

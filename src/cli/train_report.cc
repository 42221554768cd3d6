#include "cli/train_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <sstream>
#include <vector>

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

double wall_time_s() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// The step is the number of examples: workers come and go, these do not.
Result<> write_tensorboard(TensorBoardWriter& writer, const OnlineProgress& progress) {
  std::vector<TensorBoardScalar> scalars = {
      {"train/loss", progress.mean_loss()},
      {"train/auc", progress.mean_auc()},
      {"train/accuracy", progress.accuracy()},
      {"train/examples_per_s", static_cast<double>(progress.examples) / std::max(progress.seconds, 1e-9)},
      {"train/nonzero_weights", static_cast<double>(progress.nonzero)},
  };
  if (progress.validated > 0) {
    scalars.push_back({"validation/auc", progress.validation_auc});
    scalars.push_back({"validation/accuracy", progress.validation_accuracy});
    scalars.push_back({"validation/logloss", progress.validation_logloss});
  }
  return writer.write(wall_time_s(), static_cast<int64_t>(progress.examples), scalars);
}

}  // namespace

Result<TensorBoardWriter> open_tensorboard(const std::string& folder) {
  return TensorBoardWriter::create(folder, wall_time_s());
}

void TrainReporter::tell(const OnlineProgress& progress) {
  if (tensorboard_) {
    if (const auto written = write_tensorboard(*tensorboard_, progress); !written) {
      log_warning("{}; nothing more is written for TensorBoard", written.error().message);
      tensorboard_.reset();
    }
  }
  if (quiet_) return;
  if (!std::exchange(begun_, true)) fmt::print("{}\n", online_table_header());
  fmt::print("{}\n", online_table_line(progress));
  if (progress.validated > std::exchange(validated_, progress.validated)) {
    fmt::print("{}\n", validation_line(progress));
  }
  std::fflush(stdout);
}

void TrainReporter::show(const OnlineProgress& progress) {
  MutexLock lock(mutex_);
  live_.show("");
  tell(progress);
  if (!quiet_) live_.show(live_line(progress));
}

void TrainReporter::end(const OnlineProgress& progress) {
  MutexLock lock(mutex_);
  live_.show("");
  tell(progress);
}

void TrainReporter::give_up() {
  MutexLock lock(mutex_);
  live_.show("");
}

std::string online_table_header() { return " sec  examples     loss     auc  accuracy     |w|_0  updt ratio"; }

std::string online_table_line(const OnlineProgress& progress) {
  return fmt::format("{:4d}  {:.2e}  {:.3e}  {:.4f}    {:.4f}  {:.2e}    {:.2e}",
                     static_cast<int64_t>(progress.seconds), static_cast<double>(progress.examples),
                     progress.mean_loss(), progress.mean_auc(), progress.accuracy(),
                     static_cast<double>(progress.nonzero), progress.update_ratio());
}

std::string validation_line(const OnlineProgress& progress) {
  return fmt::format("validation after pass {}: auc {:.4f}, accuracy {:.4f}, logloss {:.4f}", progress.validated,
                     progress.validation_auc, progress.validation_accuracy, progress.validation_logloss);
}

std::string live_line(const OnlineProgress& progress) {
  const double rate = static_cast<double>(progress.examples) / std::max(progress.seconds, 1e-9);
  std::string text =
      fmt::format("{} examples, {}/s", short_count(static_cast<double>(progress.examples)), short_count(rate));
  if (progress.bytes == 0 || progress.bytes_all == 0) return text;
  const double share = std::min(1.0, static_cast<double>(progress.bytes) / static_cast<double>(progress.bytes_all));
  return text + fmt::format(", {:.0f}% done, {:.0f} s left", share * 100, progress.seconds * (1 - share) / share);
}

std::string encode_progress(const OnlineProgress& p) {
  return fmt::format("{} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {}", p.seconds, p.examples, p.repeated, p.loss,
                     p.auc, p.right, p.bad_lines, p.bytes, p.bytes_all, p.nonzero, p.validated, p.validation_auc,
                     p.validation_accuracy, p.validation_logloss, p.change.change2, p.change.weights2);
}

Result<OnlineProgress> decode_progress(const std::string& line) {
  OnlineProgress p;
  std::istringstream words(line);
  words >> p.seconds >> p.examples >> p.repeated >> p.loss >> p.auc >> p.right >> p.bad_lines >> p.bytes >>
      p.bytes_all >> p.nonzero >> p.validated >> p.validation_auc >> p.validation_accuracy >> p.validation_logloss >>
      p.change.change2 >> p.change.weights2;
  if (!words) return corrupt("a worker said \"{}\"", line);
  return p;
}

}  // namespace pscloud

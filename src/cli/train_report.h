#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "base/mutex.h"
#include "cli/progress.h"
#include "io/tensorboard.h"
#include "learn/online_trainer.h"

namespace pscloud {

// The lines of progress of online training.
std::string online_table_header();
std::string online_table_line(const OnlineProgress& progress);

// How the model did on the validation data, if it was tried.
std::string validation_line(const OnlineProgress& progress);

// For people who look: rate, share done and time left.
std::string live_line(const OnlineProgress& progress);

Result<TensorBoardWriter> open_tensorboard(const std::string& folder);

// Tells a person, and TensorBoard if there is one, how far training is. Thread-safe.
class TrainReporter {
 public:
  // `quiet`: no table.
  TrainReporter(bool quiet, std::optional<TensorBoardWriter> tensorboard)
      : quiet_(quiet), tensorboard_(std::move(tensorboard)) {}

  // While it goes on: a line of the table, and a live one below it if somebody looks.
  void show(const OnlineProgress& progress) EXCLUDES(mutex_);
  // The last one.
  void end(const OnlineProgress& progress) EXCLUDES(mutex_);
  // There is none: the live line goes away.
  void give_up() EXCLUDES(mutex_);

 private:
  void tell(const OnlineProgress& progress) REQUIRES(mutex_);

  const bool quiet_;
  Mutex mutex_;
  std::optional<TensorBoardWriter> tensorboard_ GUARDED_BY(mutex_);
  Progress live_ GUARDED_BY(mutex_);
  bool begun_ GUARDED_BY(mutex_) = false;
  uint32_t validated_ GUARDED_BY(mutex_) = 0;  // the pass of which was told
};

// Progress between a worker process and the one that started it.
std::string encode_progress(const OnlineProgress& progress);
Result<OnlineProgress> decode_progress(const std::string& line);

}  // namespace pscloud

#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <thread>

#include "base/mutex.h"
#include "launch/backend.h"
#include "launch/plan.h"

namespace pscloud {

// What is measured of a run, on its way to samples.csv (sample_file.h) and nodes.json in its folder, which has what
// each node last said of itself, by task. A thread of its own writes them, from the first sample on: a slow disk does
// not keep the launcher from its tasks. What that thread has not written yet is bounded; more is dropped, and counted.
// Used by one thread.
class RunSamples {
 public:
  // `plan` is borrowed.
  RunSamples(std::string run_folder, const Plan& plan);
  ~RunSamples();  // writes the rest

  // Of kSample, and of kLine, which may have figures (metrics_csv.h).
  void take(const TaskEvent& event, int64_t unix_ms);
  // All that was taken is in the files.
  void finish();

  // For people, once it is finished: what is wrong; empty if nothing.
  std::string trouble() const;

 private:
  static constexpr size_t kPendingBytesMax = 4 << 20;

  void add_row(int64_t unix_ms, std::string_view task, std::string_view name, double value) REQUIRES(mutex_);
  void add_heartbeats(const std::string& status, int64_t unix_ms) REQUIRES(mutex_);
  void write_loop();
  Result<> write_nodes(const std::map<TaskId, std::string>& nodes) const;

  const std::string folder_;
  const Plan& plan_;

  mutable Mutex mutex_;
  CondVar changed_;
  std::string rows_ GUARDED_BY(mutex_);
  std::map<TaskId, std::string> nodes_ GUARDED_BY(mutex_);
  bool nodes_changed_ GUARDED_BY(mutex_) = false;
  bool ending_ GUARDED_BY(mutex_) = false;
  uint64_t dropped_ GUARDED_BY(mutex_) = 0;
  std::string error_ GUARDED_BY(mutex_);
  std::jthread writer_;
};

}  // namespace pscloud

#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "cli/local/line_channel.h"

namespace pscloud {

// How many do the work of a job, on this machine or on a cluster.
struct WorkerCounts {
  int servers = 0;  // processes; 0: all in this process
  int workers = 0;  // processes
  int threads = 1;  // that work, in this process or in each worker's
};

// Starts servers on this machine, and workers that are this program with `words`, which join them. Returns when all
// have ended: what a worker told in the end, for each that ends well knows how all went. Others may have died; one that
// hangs is ended soon after that. What workers tell before is for `show`, from any thread; an error of it is that
// worker's.
Result<std::string> run_worker_processes(const WorkerCounts& counts, const std::vector<std::string>& words,
                                         const std::function<Result<>(const std::string& text)>& show,
                                         const Cancelled& cancelled);

// The other end: what such a worker tells, on its stdout. Thread-safe.
class WorkerVoice {
 public:
  void progress(std::string_view text) EXCLUDES(mutex_) { say("progress", text); }
  // The exit code.
  int end(const Result<std::string>& outcome) EXCLUDES(mutex_);

 private:
  void say(std::string_view word, std::string_view rest) EXCLUDES(mutex_);

  Mutex mutex_;
};

}  // namespace pscloud

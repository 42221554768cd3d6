#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/mutex.h"
#include "pscloud/error.h"

namespace pscloud {

// Removes what runs have left whose launchers were killed, each in a process of its own (`pscloud stop RUN`), which
// goes on if this one ends. Thread-safe.
class StopProcesses {
 public:
  // What it says goes to the launcher's log of the run. Does not wait.
  Result<> begin(const std::string& run, const std::string& run_folder);

 private:
  void forget_ended() REQUIRES(mutex_);

  Mutex mutex_;
  std::vector<pid_t> processes_ GUARDED_BY(mutex_);
};

}  // namespace pscloud

#pragma once

#include <string>

#include "launch/run_folder.h"

namespace pscloud {

// The truth about a run: what its launcher last wrote, and whether that launcher still lives.
struct RunReport {
  RunState state;
  bool watched = false;  // a process looks after it
  bool lost = false;     // it has not ended, and nobody looks after it any more
  size_t things = 0;     // that may still be there, and nobody looks after

  // "running", "lost": one word.
  const char* word() const { return lost ? "lost" : step_name(state.step); }
  // What a person should know beside it: who is missing, why it failed, what to do. Empty if nothing.
  std::string note() const;
};

Result<RunReport> look_at_run(const RunFolder& folder);

// Ends the run through its launcher, or, if that was killed, cleans up after it: the lines that come back name what is
// left. Waits until that is done; kTimeout if `timeout_ms` is not enough, and nothing is lost by asking again.
// `at_once` leaves the tasks no time.
Result<std::vector<std::string>> stop_run(RunFolder& folder, bool at_once, int timeout_ms);

}  // namespace pscloud

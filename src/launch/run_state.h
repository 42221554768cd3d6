#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launch/supervisor.h"

namespace pscloud {

// How far a run is, as its launcher last wrote it down (state.json). Whether that launcher still lives is known by the
// lock (run_folder.h), not by this.
struct RunState {
  enum class Step : uint8_t {
    kPlanned,   // nothing was made yet
    kStarting,  // tasks are being begun
    kWaiting,   // for tasks to arrive
    kRunning,
    kStopping,
    kDone,
    kFailed,
    kMissing,
    kInterrupted,
    kLost,  // its launcher was killed, and somebody else has cleaned up
  };
  std::string run;
  std::string job;
  std::string target;
  Step step = Step::kPlanned;
  std::string message;  // of an end that was no good one; while it waits, for whom
  std::optional<TaskId> root_cause;
  int64_t began_unix_ms = 0;
  int64_t ended_unix_ms = 0;  // 0: not yet
  std::optional<int> exit_code;
  std::vector<std::string> left;  // what could not be removed, a line each
  double cost_usd_per_hour = 0;   // now; 0: not known
  double cost_usd_offset = 0;     // what it would be wrong by if that had held from the beginning
  bool cost_incomplete = false;   // it costs more than that, and nobody knows what
  std::vector<TaskStatus> tasks;

  bool ended() const { return step >= Step::kDone; }
  // So far, or in all once it has ended.
  double cost_usd(int64_t now_unix_ms) const;
  // From now on it costs so much: other machines have its tasks.
  void change_cost(double usd_per_hour, bool incomplete, int64_t now_unix_ms);
};

int64_t unix_ms_now();

const char* step_name(RunState::Step step);
std::string run_state_json(const RunState& state);
Result<RunState> parse_run_state(std::string_view json);

}  // namespace pscloud

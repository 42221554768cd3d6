#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace pscloud {

// One event of a job of HTCondor, from the log that `log = ...` names in the submit file.
struct CondorEvent {
  enum class Kind : uint8_t {
    kSubmitted,
    kRunning,       // on a machine: `text` is its name, or its address if the log has none
    kEnded,         // by itself, whatever its code
    kRemoved,       // condor_rm, or periodic_remove
    kHeld,          // it does not go on until somebody acts: `text` says why
    kDisconnected,  // its machine does not answer
    kReconnected,
    kEvicted,  // it has lost its machine: it was thrown off, or the lease has ended
    kFailed,   // HTCondor could not run it there
  };
  Kind kind = Kind::kSubmitted;
  int process = 0;  // its number within the submission
  std::string text = {};
};

// Reads the log as it grows. What is not finished yet waits; events nobody here needs are left out.
class CondorLog {
 public:
  std::vector<CondorEvent> read(std::string_view more);

 private:
  std::string rest_;
};

}  // namespace pscloud

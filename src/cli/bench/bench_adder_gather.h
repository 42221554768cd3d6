#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/bench/bench_adder_job.h"
#include "launch/backend.h"
#include "launch/task_logs.h"

namespace pscloud {

// What the workers of an adder say of themselves on stdout, ours (bench_adder_task.h) and those of other systems
// (bench/peers/adder.py): lines that begin with "adder ", and then
//   ready HOW                  all are there; over what it talks, or of a peer its version and way
//   sample PUSH PULL ALL CPU   an iteration (encode_sample); ours have a value behind it
//   apart sample ...           one of push, then pull, of a worker that is alone in sync mode
//   limits ...                 what a tensor costs at least (encode_limits)
//   unmeasured WHY             there is no raw socket
//   missing                    the peer is not installed on this machine
//   values ok | values wrong   the end
inline constexpr const char* kAdderLine = "adder ";
inline constexpr const char* kReadyWord = "ready ";
inline constexpr const char* kApartWord = "apart ";
inline constexpr const char* kUnmeasuredWord = "unmeasured ";
inline constexpr const char* kMissingWord = "missing";
inline constexpr const char* kValuesOk = "values ok";
inline constexpr const char* kValuesWrong = "values wrong";

// Milliseconds for one tensor; NaN if not measured.
struct AdderLimits {
  double add_ms = 0, add2_ms = 0, copy_ms = 0;
  double poll_ms = 0, threads_ms = 0;  // raw socket, by Duplex
};
std::string encode_limits(const AdderLimits& limits);
Result<AdderLimits> decode_limits(std::string_view line);

// Makes an outcome of what the tasks of a run say. One thread.
class AdderGather {
 public:
  // A step of the first worker, as it comes; `split` is the iteration that times push and pull by themselves.
  using OnStep = std::function<void(const AdderSample& sample, const AdderSample& split)>;

  AdderGather(const AdderFlags& flags, OnStep on_step) : flags_(flags), on_step_(std::move(on_step)) {}

  // For LaunchOptions::look. Hides the lines above, and whatever else is on stdout.
  LineLook look(const TaskEvent& event);

  // When the run is done. kCorrupt names a worker that did not tell all.
  Result<AdderOutcome> outcome() const;

  // Machines on which a peer is not installed, each once.
  std::vector<std::string> missing_on() const;
  // Machines with servers and workers.
  int hosts() const;
  // Why there is no limit of a raw socket; empty if there is, or none was wanted.
  const std::string& unmeasured() const { return unmeasured_; }

 private:
  struct WorkerStory {
    std::string how;
    std::vector<AdderSample> samples, apart;
    std::optional<bool> values_ok;
  };

  Result<> take(TaskId task, std::string_view line);
  void tell_steps();
  bool measures_apart() const { return flags_.plan.sync && flags_.cluster.workers == 1; }
  // How many tensors pass the busiest machine in one iteration, and how many are added there.
  double tensors_moved() const;
  double tensors_added() const;

  const AdderFlags& flags_;
  const OnStep on_step_;
  std::map<TaskId, WorkerStory> workers_;
  std::map<TaskId, std::string> hosts_;     // by the address that the others know
  std::map<TaskId, std::string> machines_;  // by the name that people know
  std::vector<TaskId> missing_;
  std::vector<AdderLimits> limits_;
  std::string unmeasured_;
  std::optional<Error> wrong_;
  size_t steps_told_ = 0;
};

}  // namespace pscloud

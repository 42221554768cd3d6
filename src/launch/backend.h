#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "launch/cluster_file.h"
#include "launch/ledger.h"
#include "launch/plan.h"
#include "launch/task.h"

namespace pscloud {

// What was measured, by name.
using Figures = std::vector<std::pair<std::string, double>>;

// 1 to 64 printable characters of ASCII, none of which means something in CSV.
bool is_figure_name(std::string_view name);

// Something that happened to a task.
struct TaskEvent {
  enum class Kind : uint8_t {
    kPlaced,   // it has a machine: `host`
    kArrived,  // it can be reached at `address`, and waits to be released
    kRunning,  // its program runs
    kLine,     // its program wrote `text`, without the end of line
    kExited,   // its program has ended: `code`, or by `signal`
    kLost,     // its machine is gone, or it was never there: `text` says why
    kNotice,   // its machine will be taken away: in `seconds`, and `text` says how ("terminate")
    kSample,  // what was measured of it: `figures`, and what a node of ours says of itself: `text`, JSON. Either may be
              // empty. Means nothing for what happens next
  };
  Kind kind = Kind::kLine;
  TaskId task;
  std::string host = {};
  Address address = {};
  std::string text = {};
  bool is_stderr = false;
  bool continues = false;  // of kLine: the line was too long for one event (64 KB), the next of this task goes on
  int code = 0;
  int signal = 0;  // 0: none
  // Of kExited, since ends that are close to each other do not come in their order: when its program ended by itself,
  // by the clock of where it ran (0: not known, or it was told to end); how long ago that was when the event was handed
  // out; and how much longer ago it may be, because nobody looked. Clocks of two machines need not agree.
  int64_t ended_unix_us = 0;
  std::chrono::microseconds ended_ago{0};
  std::chrono::microseconds heard_late{0};
  int64_t pid = 0;  // of kRunning: the program's, where it runs; 0: not known
  int seconds = 0;  // of kNotice
  Figures figures = {};
};

// A kind of cluster. It starts the tasks of a plan, tells what happens to them, ends them, and undoes what is left. It
// decides nothing: supervisor.h does, the same for all. One thread calls it, with SIGINT, SIGTERM and SIGHUP blocked:
// processes that it starts get an empty mask.
class Backend {
 public:
  virtual ~Backend() = default;

  // Asks all that can be asked before anything is made, everything at once: hosts reached, keys taken, programs there.
  // Each line of the error is one thing that is wrong and what to do about it.
  virtual Result<> check(const Plan& plan) = 0;

  // What `--plan` shows beside the plan: a manifest, a submit file, without secrets. Makes nothing, asks nobody.
  virtual Result<std::string> preview(const Plan&) { return std::string(); }

  // Begins all tasks; each thing stands in `ledger` before it is made. Returns without waiting for them to arrive.
  // `plan` and `ledger` outlive this.
  virtual Result<> start(const Plan& plan, Ledger& ledger) = 0;

  // Tells the tasks that have arrived who is where: their programs start. Called again with more tasks if some came
  // late. Nothing to do where addresses are known before.
  virtual Result<> release(const ClusterView& view) = 0;

  // SIGTERM to the program, SIGKILL after its grace; `at_once`: SIGKILL now. kExited follows. Does not wait.
  virtual Result<> stop(TaskId task, bool at_once) = 0;

  // Begins a task that has ended once more, on a machine that may be none of the plan's: `task` says which, and is as
  // the plan's else. kInvalid where tasks cannot move.
  virtual Result<> restart(const Plan&, const PlannedTask& task, const Host&, Ledger&) {
    return invalid("{} cannot begin once more here", task.spec.id.text());
  }

  // What has happened, in the order of time as far as it can be known; waits for it until `deadline` at most, or until
  // `wake_fd` is readable (-1: none). A few thousand events at most: the rest waits, and so does who writes it.
  virtual Result<std::vector<TaskEvent>> wait(std::chrono::steady_clock::time_point deadline, int wake_fd) = 0;

  // Ends and removes everything that `ledger` still has, be it of this process or of one that was killed, and checks
  // that it is gone (then Ledger::gone). The lines that come back name what is left, and why.
  virtual Result<std::vector<std::string>> clean(const Plan& plan, Ledger& ledger) = 0;

  // The command line, for this machine, that opens a shell where the task runs.
  virtual Result<std::vector<std::string>> shell(const Plan& plan, TaskId task) = 0;
};

// A setting of one kind of cluster: "slurm:partition=gpu", or `options` of a cluster file.
struct BackendOption {
  const char* name;
  const char* help;
};

// A line of the table in backend.cc: a new kind is one file and this line.
struct BackendKind {
  const char* name;
  const char* help;
  bool images;     // a task with an image runs in a container of it
  bool resources;  // a task gets the processors, memory and GPUs that it asks for
  std::span<const BackendOption> options;
  // `run_folder` is the run's own folder on this machine (run_folder.h). The options have names that stand above.
  Result<std::unique_ptr<Backend>> (*make)(const Cluster& cluster, const std::string& run_folder);
};
std::span<const BackendKind> backend_kinds();

// For `cluster.target`. kInvalid lists the kinds there are, or the options of this one.
Result<std::unique_ptr<Backend>> make_backend(const Cluster& cluster, const std::string& run_folder);

// kInvalid if the plan wants what its kind of cluster cannot give: an image where there are no containers. Names the
// kinds that can.
Result<> check_wishes(const Plan& plan);

// What a plan asks for that its kind of cluster does not see to, though it can run it: a line for people; empty:
// nothing.
std::string unheeded_wishes(const Plan& plan);

// The value of an option; empty if it is not given.
std::string option_of(const Cluster& cluster, std::string_view name);

}  // namespace pscloud

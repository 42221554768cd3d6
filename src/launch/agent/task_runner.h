#pragma once

#include <poll.h>

#include <chrono>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "launch/agent/line_buffer.h"
#include "launch/agent/node_probe.h"
#include "launch/agent/port_lease.h"
#include "launch/agent/process_sampler.h"
#include "launch/agent/spot_watch.h"
#include "launch/backend.h"
#include "launch/task.h"

namespace pscloud {

// The entry of the environment by which every process of a task can be found: "PSCLOUD_LAUNCH=job/worker-0".
inline constexpr const char* kTaskMark = "PSCLOUD_LAUNCH";

// In a task's private folder: the identity of its program, there before it runs (processes.h).
inline constexpr const char* kProcessFile = "process";
// There too: what EC2 says when it takes the machine away (kNoticeVariable).
inline constexpr const char* kNoticeFile = "notice";
// There too: the folder in which nodes of ours that the task runs serve /status.
inline constexpr const char* kStatusFolder = "status";

// One task on this machine, from its port to the end of the last process that it has started. Does not block and does
// not wait: the agent (agent.h) does, and hands in what happens. One thread, that of main(): programs die with it.
class TaskRunner {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // Leases a port, makes the task's files: kArrived, or kLost, is the first event.
  TaskRunner(TaskSpec spec, Random& random, Time now);
  // Nothing of the task is left after this, whatever its state.
  ~TaskRunner();
  TaskRunner(const TaskRunner&) = delete;
  TaskRunner& operator=(const TaskRunner&) = delete;

  // Runs the program, if it does not run yet and the view has this task.
  void release(const ClusterView& view, Time now);
  // SIGTERM, and SIGKILL after the grace or `at_once`.
  void stop(bool at_once, Time now);

  // This machine is taken away: the program finds the notice in a file, and kNotice tells of it.
  void take_notice(const SpotNotice& notice, int left_s);

  // A child of this process has ended; true if it was this task's program.
  bool on_child_end(pid_t pid, int wait_status, Time now);
  // Reads what the program wrote if `read_lines`, and does what is due.
  void work(bool read_lines, Time now);

  void add_to(std::vector<pollfd>& polled, bool read_lines) const;
  Time next_deadline() const;

  // For who measures; none while no program runs.
  std::optional<SampledTask> sampled() const;
  // A sample of it: what its processes use. And `ask_nodes` asks its nodes too, whose answers come as another.
  void take_sample(Figures figures);
  void ask_nodes(Time now);

  std::vector<TaskEvent> take_events();
  bool has_ended() const { return state_ == State::kEnded; }
  int exit_code() const;  // once it has ended; 128 + signal
  const TaskSpec& spec() const { return spec_; }

 private:
  enum class State : uint8_t {
    kWaiting,   // has arrived
    kRunning,   // its program runs
    kDraining,  // its program has ended, its last lines are on their way
    kEnded,
  };
  struct Output {
    Fd fd;
    LineBuffer lines;
    bool is_stderr;
  };

  Result<> prepare(Random& random);
  Result<> make_private_files();
  Result<pid_t> run_program(const ClusterView& view);
  Result<> note_process(pid_t pid) const;
  void read_output(Output& output, bool to_the_end);
  void tell_nodes(NodeProbe::Look look);
  void kill_everything();
  void finish();
  void say(TaskEvent event);
  void say_line(std::string text, bool is_stderr, bool continues);

  const TaskSpec spec_;
  State state_ = State::kWaiting;
  Address address_;
  std::string private_folder_;
  Variables file_variables_;
  std::optional<PortLease> lease_;
  pid_t pid_ = 0;
  Time started_;
  std::optional<NodeProbe> nodes_;
  std::string last_status_;
  std::vector<Output> outputs_;
  std::optional<Time> kill_at_;
  Time view_deadline_;
  Time drain_deadline_;
  int code_ = 0;
  int signal_ = 0;
  int64_t ended_unix_us_ = 0;  // if it ended by itself
  Time ended_;
  bool lost_ = false;
  std::deque<TaskEvent> events_;
};

}  // namespace pscloud

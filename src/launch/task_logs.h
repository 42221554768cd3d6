#pragma once

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "launch/backend.h"
#include "launch/metrics_csv.h"
#include "launch/plan.h"
#include "launch/terminal.h"

namespace pscloud {

// How a line is shown on the terminal.
enum class LineLook : uint8_t { kNamed, kBare, kHidden };  // "[worker-0] text", "text", not at all

// What tasks write, on its way to their files in the run's folder (logs/worker-0.log, as it came, only appended), to
// the terminal, to metrics.csv, and to the last lines that an error shows. Memory is bounded,
// whatever is written. One thread.
class TaskLogs {
 public:
  static constexpr size_t kLastLines = 10;

  // `terminal` may be nullptr: nothing is shown.
  TaskLogs(const std::string& run_folder, const Plan& plan, Terminal* terminal);

  // Of kLine.
  Result<> take(const TaskEvent& line, LineLook look = LineLook::kNamed);
  // To the files; call it before waiting.
  Result<> flush();

  // The end of what the task wrote: kLastLines at most, long ones cut.
  std::vector<std::string> last_lines(TaskId task) const;

 private:
  struct TaskLog {
    Fd file;
    std::string pending;  // for the file
    std::deque<std::string> last;
    bool open_line = false;  // its last piece had no end yet
  };

  Result<> write_out(TaskId id, TaskLog& log);
  void show(const TaskEvent& line, bool begins, LineLook look);
  void remember(TaskLog& log, const TaskEvent& line, bool begins);

  const std::string folder_;
  Terminal* const terminal_;
  size_t prefix_width_ = 0;
  std::map<TaskId, TaskLog> logs_;
  MetricsCsv metrics_;
  std::optional<TaskId> open_on_terminal_;  // whose line has not ended there
};

}  // namespace pscloud

#include "launch/task_logs.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "launch/process/write_all.h"

namespace pscloud {
namespace {

constexpr size_t kPendingBytes = 256 << 10;
constexpr size_t kLineShown = 1000;  // of a line that is remembered

void append_bounded(std::string_view text, std::string& line) {
  if (line.size() >= kLineShown) return;
  line += text.substr(0, kLineShown - line.size());
  if (line.size() == kLineShown) line += "...";
}

}  // namespace

TaskLogs::TaskLogs(const std::string& run_folder, const Plan& plan, Terminal* terminal)
    : folder_(run_folder + "/logs"), terminal_(terminal), metrics_(run_folder + "/metrics.csv") {
  for (const PlannedTask& task : plan.tasks) {
    logs_[task.spec.id];
    prefix_width_ = std::max(prefix_width_, task.spec.id.text().size());
  }
}

Result<> TaskLogs::take(const TaskEvent& line, LineLook look) {
  TaskLog& log = logs_[line.task];
  const bool begins = !log.open_line;
  log.pending += line.text;
  if (!line.continues) log.pending += '\n';
  log.open_line = line.continues;
  remember(log, line, begins);
  show(line, begins, look);
  if (begins && !line.continues) TRY(metrics_.take(line.task.text(), line.text));
  if (log.pending.size() >= kPendingBytes) TRY(write_out(line.task, log));
  return {};
}

void TaskLogs::remember(TaskLog& log, const TaskEvent& line, bool begins) {
  if (begins) {
    log.last.emplace_back();
    if (log.last.size() > kLastLines) log.last.pop_front();
  }
  append_bounded(line.text, log.last.back());
}

void TaskLogs::show(const TaskEvent& line, bool begins, LineLook look) {
  if (terminal_ == nullptr || look == LineLook::kHidden) return;
  const TaskId id = line.task;
  std::string text;
  if (open_on_terminal_ && *open_on_terminal_ != id) {
    text = "\n";
    begins = true;
  }
  if (look == LineLook::kNamed && (begins || open_on_terminal_ != id)) {
    const std::string name = id.text();
    text += fmt::format("[{}]{:{}} ", name, "", prefix_width_ - std::min(prefix_width_, name.size()));
  }
  text += line.text;
  if (!line.continues) text += '\n';
  terminal_->write(line.is_stderr ? Terminal::Stream::kErr : Terminal::Stream::kOut, text);
  open_on_terminal_ = line.continues ? std::optional(id) : std::nullopt;
}

Result<> TaskLogs::flush() {
  if (terminal_ != nullptr) terminal_->next_round();
  for (auto& [id, log] : logs_) TRY(write_out(id, log));
  return metrics_.flush();
}

Result<> TaskLogs::write_out(TaskId id, TaskLog& log) {
  if (log.pending.empty()) return {};
  const std::string path = fmt::format("{}/{}.log", folder_, id.text());
  if (!log.file) {
    log.file = Fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
    if (!log.file) return unavailable("{}: cannot open it: {}", path, errno_text(errno));
  }
  TRY(write_all(log.file.get(), log.pending).at(path));
  log.pending.clear();
  return {};
}

std::vector<std::string> TaskLogs::last_lines(TaskId task) const {
  const auto found = logs_.find(task);
  if (found == logs_.end()) return {};
  return {found->second.last.begin(), found->second.last.end()};
}

}  // namespace pscloud

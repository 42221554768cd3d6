#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/fd.h"
#include "base/json.h"
#include "cli/cloud/controller_client.h"
#include "cli/exit_code.h"
#include "cli/run/remote_runs.h"
#include "cli/verb.h"
#include "launch/run_folder.h"

namespace pscloud {
namespace {

constexpr const char* kLogsAbout = R"(Prints what the tasks of a run have written, also long after its end:

  pscloud logs clicks                 all tasks, each line with its task
  pscloud logs clicks worker-1        as it was written
  pscloud logs clicks worker-1 -f     and goes on until the run ends
  pscloud logs clicks --tail 5        the last lines of each
  pscloud logs clicks launcher        what the launcher had to say

The files are logs/worker-1.log in the folder of the run.)";

constexpr std::chrono::milliseconds kLookEvery{50};

struct LogsCommand {
  std::string run;
  std::string task;
  bool follow = false;
  int tail = -1;
  bool json = false;
  ControllerFlags controller;
};

// A log file, read from where it was left.
class LogReader {
 public:
  LogReader(std::string task, std::string path) : task_(std::move(task)), path_(std::move(path)) {}

  // Goes to where the last `lines` lines begin.
  void skip_to_tail(int lines) {
    if (!open()) return;
    off_t at = ::lseek(file_.get(), 0, SEEK_END);
    char buffer[65536];
    // The end of the last line is not one more line.
    for (int ends = -1; at > 0;) {
      const auto bytes = static_cast<size_t>(std::min<off_t>(at, sizeof buffer));
      const off_t begin = at - static_cast<off_t>(bytes);
      if (::pread(file_.get(), buffer, bytes, begin) != static_cast<ssize_t>(bytes)) return;
      for (size_t i = bytes; i-- > 0;) {
        if (buffer[i] == '\n' && ++ends == lines) {
          offset_ = begin + static_cast<off_t>(i) + 1;
          return;
        }
      }
      at = begin;
    }
  }

  // Prints what is there; false if there was nothing new. Memory stays small, however long a line is.
  bool print(bool with_name, bool json) {
    if (!open()) return false;
    char buffer[65536];
    bool any = false;
    while (true) {
      const ssize_t got = ::pread(file_.get(), buffer, sizeof buffer, offset_);
      if (got <= 0) return any;
      any = true;
      offset_ += got;
      std::string_view text(buffer, static_cast<size_t>(got));
      while (!text.empty()) {
        const std::string_view line = text.substr(0, text.find('\n'));
        const bool ends = line.size() < text.size();
        print_piece(line, ends, with_name, json);
        text.remove_prefix(line.size() + (ends ? 1 : 0));
      }
    }
  }

 private:
  bool open() {
    if (!file_) file_ = Fd(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
    return static_cast<bool>(file_);
  }

  void print_piece(std::string_view text, bool ends, bool with_name, bool json) {
    if (json) {
      JsonWriter writer;
      writer.begin_object().field("task", task_).field("text", text);
      if (!ends) writer.field("continues", true);
      fmt::print("{}\n", writer.end_object().text());
      return;
    }
    if (with_name && !in_line_) fmt::print("[{}] ", task_);
    std::fwrite(text.data(), 1, text.size(), stdout);
    if (ends) std::fputc('\n', stdout);
    in_line_ = !ends;
  }

  const std::string task_;
  const std::string path_;
  Fd file_;
  off_t offset_ = 0;
  bool in_line_ = false;
};

Result<std::vector<LogReader>> find_logs(const RunFolder& folder, const std::string& task) {
  std::vector<LogReader> logs;
  if (task == "launcher") {
    logs.emplace_back(task, folder.path("launcher.log"));
    return logs;
  }
  const RunState state = TRY(folder.state());
  if (!task.empty()) TRY(parse_task_id(task));
  for (const TaskStatus& each : state.tasks) {
    const std::string name = each.id.text();
    if (task.empty() || task == name) logs.emplace_back(name, folder.path("logs/" + name + ".log"));
  }
  if (logs.empty()) {
    return not_found("the run '{}' has no task '{}': `pscloud status {}` lists them", folder.name(), task,
                     folder.name());
  }
  return logs;
}

int run_logs(const LogsCommand& command) {
  if (!command.controller.controller.empty()) {
    if (command.tail >= 0 || command.json) return fail(invalid("--tail and --json are for runs of this machine"));
    return remote_logs(command.controller, command.run, command.task, command.follow);
  }
  const auto runs = find_runs_folder();
  if (!runs) return fail(runs.error());
  const auto folder = RunFolder::open(*runs, command.run);
  if (!folder) return fail(folder.error());
  auto logs = find_logs(*folder, command.task);
  if (!logs) return fail(logs.error());
  const bool with_names = command.task.empty();
  if (command.tail >= 0) {
    for (LogReader& log : *logs) log.skip_to_tail(command.tail);
  }
  while (true) {
    // Asked before: what was written until then is read after.
    const bool goes_on = command.follow && folder->is_watched();
    bool any = false;
    for (LogReader& log : *logs) any = log.print(with_names, command.json) || any;
    if (std::fflush(stdout) != 0) return kExitFailed;  // nobody reads any more
    if (!goes_on) return kExitDone;
    if (!any) std::this_thread::sleep_for(kLookEvery);
  }
}

}  // namespace

void add_logs(CLI::App& verb, Action& action) {
  const auto command = std::make_shared<LogsCommand>();
  verb.add_option("run", command->run, "`pscloud status` lists them")->type_name("RUN")->required();
  verb.add_option("task", command->task, "worker-0, say, or launcher")->type_name("TASK");
  verb.add_flag("-f,--follow", command->follow, "go on until the run ends");
  verb.add_option("--tail", command->tail, "only the last lines")->type_name("N")->check(CLI::NonNegativeNumber);
  verb.add_flag("--json", command->json, "a line of JSON for each");
  add_controller_flags(verb, command->controller);
  verb.footer(kLogsAbout);
  verb.callback([command, &action] { action = [command] { return run_logs(*command); }; });
}

}  // namespace pscloud

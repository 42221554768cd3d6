#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/text.h"
#include "cli/cloud/controller_client.h"
#include "cli/exit_code.h"
#include "cli/run/remote_runs.h"
#include "cli/table_text.h"
#include "cli/verb.h"
#include "launch/run_report.h"

namespace pscloud {
namespace {

constexpr const char* kStatusAbout = R"(Lists the runs of this user: those that have not ended, and the latest that
have. With a name, the tasks of that run.

NODES are those that have arrived, of all. A run is `lost` if its launcher was
killed; `pscloud down` removes what it has left. SINCE is how long ago it began
or, once it has ended, ended.)";

constexpr size_t kEndedShown = 20;

struct StatusCommand {
  std::string run;
  bool all = false;
  bool json = false;
  ControllerFlags controller;
};

std::string nodes_text(const RunState& state) {
  const auto here = std::ranges::count_if(state.tasks, [](const TaskStatus& task) {
    return task.state == TaskState::kArrived || task.state == TaskState::kRunning || task.state == TaskState::kDone;
  });
  return state.ended() ? fmt::format("{}", state.tasks.size()) : fmt::format("{}/{}", here, state.tasks.size());
}

// Of a run whose launcher was killed nobody has looked since.
const char* task_word(const RunReport& report, const TaskStatus& task) {
  return report.lost && !task.ended() ? "unknown" : task_state_name(task.state);
}

void write_report(JsonWriter& json, const RunReport& report, const std::string& folder) {
  const RunState& state = report.state;
  json.begin_object().field("run", state.run).field("target", state.target).field("state", report.word());
  json.field("note", report.note()).field("folder", folder);
  json.field("began_unix_ms", state.began_unix_ms).field("ended_unix_ms", state.ended_unix_ms);
  if (state.exit_code) json.field("exit_code", *state.exit_code);
  if (state.cost_usd_per_hour > 0) {
    json.field("cost_usd_per_hour", state.cost_usd_per_hour).field("cost_usd", state.cost_usd(unix_ms_now()));
  }
  if (state.cost_incomplete) json.field("cost_incomplete", true);
  if (state.root_cause) json.field("root_cause", state.root_cause->text());
  json.field("things_left", static_cast<uint64_t>(report.things)).key("tasks").begin_array();
  for (const TaskStatus& task : state.tasks) {
    json.begin_object().field("task", task.id.text()).field("state", task_word(report, task));
    json.field("host", task.host).field("address", task.address.host.empty() ? "" : task.address.text());
    if (task.code) json.field("exit_code", *task.code);
    json.end_object();
  }
  json.end_array().end_object();
}

int show_run(const std::string& runs, const StatusCommand& command) {
  const auto folder = RunFolder::open(runs, command.run);
  if (!folder) return fail(folder.error());
  const auto report = look_at_run(*folder);
  if (!report) return fail(report.error());
  if (command.json) {
    JsonWriter json;
    write_report(json, *report, folder->path());
    fmt::print("{}\n", json.text());
    return kExitDone;
  }
  const RunState& state = report->state;
  const std::string note = report->note();
  fmt::print("{} on {}: {}{}{}\n", state.run, state.target, report->word(), note.empty() ? "" : ": ",
             escape_controls(note));
  fmt::print("folder {}\n", folder->path());
  print_cost(state.cost_usd_per_hour, state.cost_usd(unix_ms_now()), state.cost_incomplete);
  std::vector<std::vector<std::string>> rows{{"TASK", "WHERE", "STATE", "EXIT", "ADDRESS"}};
  for (const TaskStatus& task : state.tasks) {
    rows.push_back({task.id.text(), task.host.empty() ? "-" : task.host, task_word(*report, task),
                    task.code ? fmt::format("{}", *task.code) : "-",
                    task.address.host.empty() ? "-" : task.address.text()});
  }
  print_table(rows);
  for (const std::string& line : state.left) fmt::print("left: {}\n", escape_controls(line));
  return kExitDone;
}

int list(const std::string& runs, const StatusCommand& command) {
  const std::vector<RunEntry> entries = list_runs(runs);
  std::vector<std::vector<std::string>> rows{{"NAME", "WHERE", "STATE", "NODES", "SINCE", ""}};
  JsonWriter json;
  json.begin_object().key("runs").begin_array();
  size_t ended = 0;
  size_t hidden = 0;
  for (const RunEntry& entry : entries) {
    if (entry.settled && ++ended > kEndedShown && !command.all) {
      ++hidden;
      continue;
    }
    const auto folder = RunFolder::open(runs, entry.name);
    const auto report = folder ? look_at_run(*folder) : Result<RunReport>(folder.error());
    if (!report) {
      if (folder) fmt::print(stderr, "pscloud: {}\n", escape_controls(report.error().message));
      continue;  // or it was just removed
    }
    if (command.json) {
      write_report(json, *report, folder->path());
      continue;
    }
    const RunState& state = report->state;
    rows.push_back({state.run, state.target, report->word(), nodes_text(state),
                    age_text(state.ended() ? state.ended_unix_ms : state.began_unix_ms),
                    escape_controls(report->note())});
  }
  if (command.json) {
    fmt::print("{}\n", json.end_array().field("more", static_cast<uint64_t>(hidden)).end_object().text());
    return kExitDone;
  }
  if (entries.empty()) {
    fmt::print(stderr, "pscloud: there are no runs yet: `pscloud run --help` tells how to start one\n");
    return kExitDone;
  }
  print_table(rows);
  if (hidden > 0) fmt::print(stderr, "pscloud: {} older runs: `pscloud status --all` lists them too\n", hidden);
  return kExitDone;
}

}  // namespace

void add_status(CLI::App& verb, Action& action) {
  const auto command = std::make_shared<StatusCommand>();
  verb.add_option("run", command->run, "its tasks")->type_name("RUN");
  verb.add_flag("--all", command->all, "all that have ended, not only the latest");
  verb.add_flag("--json", command->json, "for programs");
  add_controller_flags(verb, command->controller);
  verb.footer(kStatusAbout);
  verb.callback([command, &action] {
    action = [command] {
      if (!command->controller.controller.empty()) {
        return remote_status(command->controller, command->run, command->all, command->json);
      }
      const auto runs = find_runs_folder();
      if (!runs) return fail(runs.error());
      return command->run.empty() ? list(*runs, *command) : show_run(*runs, *command);
    };
  });
}

}  // namespace pscloud

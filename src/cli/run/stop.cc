#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/text.h"
#include "cli/cloud/controller_client.h"
#include "cli/exit_code.h"
#include "cli/run/remote_runs.h"
#include "cli/verb.h"
#include "launch/run_report.h"

namespace pscloud {
namespace {

constexpr const char* kStopAbout = R"(Stops a run as Ctrl-C in its terminal would: SIGTERM to each task, SIGKILL
after its grace; waits until all have ended. If the launcher of the run was
killed, what it has left is removed.)";

struct StopCommand {
  std::string run;
  bool at_once = false;
  int timeout_s = 120;
  bool json = false;
  ControllerFlags controller;
};

int run_stop(const StopCommand& command) {
  if (!command.controller.controller.empty()) {
    return remote_stop(command.controller, command.run, command.at_once, command.timeout_s, command.json);
  }
  const auto runs = find_runs_folder();
  if (!runs) return fail(runs.error());
  auto folder = RunFolder::open(*runs, command.run);
  if (!folder) return fail(folder.error());
  const bool had_ended = folder->is_settled();
  const auto left = stop_run(*folder, command.at_once, command.timeout_s * 1000);
  if (!left) return fail(left.error());
  const auto report = look_at_run(*folder);
  if (!report) return fail(report.error());
  if (command.json) {
    JsonWriter json;
    json.begin_object().field("run", command.run).field("state", report->word()).key("left").begin_array();
    for (const std::string& line : *left) json.value(line);
    fmt::print("{}\n", json.end_array().end_object().text());
  } else {
    fmt::print("{} {}{}\n", command.run, had_ended ? "had ended already: " : "", report->word());
    for (const std::string& line : *left) fmt::print(stderr, "pscloud: left: {}\n", escape_controls(line));
  }
  return left->empty() ? kExitDone : kExitFailed;
}

}  // namespace

void add_stop(CLI::App& verb, Action& action) {
  const auto command = std::make_shared<StopCommand>();
  verb.add_option("run", command->run, "`pscloud status` lists them")->type_name("RUN")->required();
  verb.add_flag("--at-once", command->at_once, "SIGKILL, no grace");
  verb.add_option("--timeout", command->timeout_s, "to wait for its end [120]")
      ->type_name("SECONDS")
      ->check(CLI::Range(0, 1000000));
  verb.add_flag("--json", command->json, "for programs");
  add_controller_flags(verb, command->controller);
  verb.footer(kStopAbout);
  verb.callback([command, &action] { action = [command] { return run_stop(*command); }; });
}

}  // namespace pscloud

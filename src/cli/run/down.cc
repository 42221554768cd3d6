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

constexpr const char* kDownAbout = R"(Removes whatever runs have left whose launchers were killed: processes here and
on other machines, services, queued jobs, folders. Each thing was written down
before it was made, and is checked to be gone. Runs that go on are left alone;
with --all they are stopped first. Logs and results stay.)";

struct DownCommand {
  bool all = false;
  int timeout_s = 120;
  bool json = false;
  ControllerFlags controller;
};

struct Cleaned {
  std::string run;
  std::string what;               // "removed", "stopped", or an error
  std::vector<std::string> left;  // lines
  bool ok = true;
};

Cleaned clean_one(RunFolder& folder, const DownCommand& command) {
  Cleaned cleaned{.run = folder.name(), .what = folder.is_watched() ? "stopped" : "cleaned up", .left = {}, .ok = true};
  auto left = stop_run(folder, false, command.timeout_s * 1000);
  if (!left) {
    cleaned.what = left.error().message;
    cleaned.ok = false;
  } else {
    cleaned.left = *std::move(left);
    cleaned.ok = cleaned.left.empty();
  }
  return cleaned;
}

int run_down(const DownCommand& command) {
  if (!command.controller.controller.empty()) {
    return remote_down(command.controller, command.all, command.timeout_s, command.json);
  }
  const auto runs = find_runs_folder();
  if (!runs) return fail(runs.error());
  remove_unborn(*runs);
  std::vector<Cleaned> all;
  size_t going_on = 0;
  for (const RunEntry& entry : list_runs(*runs)) {
    if (entry.settled) continue;
    auto folder = RunFolder::open(*runs, entry.name);
    if (!folder) continue;
    if (folder->is_watched() && !command.all) {
      ++going_on;
    } else {
      all.push_back(clean_one(*folder, command));
    }
  }
  bool ok = true;
  JsonWriter json;
  json.begin_object().key("runs").begin_array();
  for (const Cleaned& cleaned : all) {
    ok = ok && cleaned.ok;
    json.begin_object().field("run", cleaned.run).field("what", cleaned.what).field("ok", cleaned.ok);
    json.key("left").begin_array();
    for (const std::string& line : cleaned.left) json.value(line);
    json.end_array().end_object();
    if (command.json) continue;
    fmt::print("{}: {}\n", cleaned.run, escape_controls(cleaned.what));
    for (const std::string& line : cleaned.left) fmt::print("  left: {}\n", escape_controls(line));
  }
  if (command.json) {
    fmt::print("{}\n", json.end_array().field("going_on", static_cast<uint64_t>(going_on)).end_object().text());
  } else if (all.empty()) {
    fmt::print("nothing was left\n");
  }
  if (going_on > 0 && !command.json) {
    fmt::print("{} run{} on: `pscloud down --all` stops {} too\n", going_on, going_on == 1 ? " goes" : "s go",
               going_on == 1 ? "it" : "them");
  }
  return ok ? kExitDone : kExitFailed;
}

}  // namespace

void add_down(CLI::App& verb, Action& action) {
  const auto command = std::make_shared<DownCommand>();
  verb.add_flag("--all", command->all, "stop the runs that go on, too");
  verb.add_option("--timeout", command->timeout_s, "to wait for the end of each [120]")
      ->type_name("SECONDS")
      ->check(CLI::Range(0, 1000000));
  verb.add_flag("--json", command->json, "for programs");
  add_controller_flags(verb, command->controller);
  verb.footer(kDownAbout);
  verb.callback([command, &action] { action = [command] { return run_down(*command); }; });
}

}  // namespace pscloud

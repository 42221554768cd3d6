#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "base/json.h"
#include "base/text.h"
#include "cli/cloud/cluster_verb.h"
#include "cli/exit_code.h"
#include "cli/interruption.h"
#include "launch/cloud/cloud_down.h"

namespace pscloud {
namespace {

constexpr const char* kClusterDownAbout =
    R"(Ends the machines and removes all that was made for them, and looks whether it is
gone. For a cluster whose folder is lost, or on another machine, --id names it:
`pscloud cluster ls --account` lists what your account has.)";

struct ClusterDownCommand {
  std::string name;
  std::string id;
  std::string region;
  std::string endpoint;
  int timeout_s = 900;
  int settle_s = 10;
  bool json = false;
};

// The words that name it once more.
std::string same_cluster(const ClusterDownCommand& command) {
  if (command.id.empty()) return command.name;
  std::string words = "--id " + command.id;
  if (!command.region.empty()) words += " --region " + command.region;
  if (!command.endpoint.empty()) words += " --endpoint " + command.endpoint;
  return words;
}

int run_cluster_down(const ClusterDownCommand& command) {
  if (command.name.empty() == command.id.empty()) {
    return fail_usage("one of NAME and --id says which cluster", "`pscloud cluster down --help` tells more");
  }
  const Interruption interruption;
  const TakeDownOptions options{.say =
                                    [&](std::string_view line) {
                                      if (!command.json) fmt::print(stderr, "pscloud: {}\n", escape_controls(line));
                                    },
                                .cancelled = interruption.cancelled(),
                                .timeout = std::chrono::seconds(command.timeout_s),
                                .settle = std::chrono::seconds(command.settle_s)};
  const auto left = command.id.empty() ? take_down(command.name, options)
                                       : take_down_by_id(command.id, command.region, command.endpoint, options);
  if (interruption.happened() && (!left || !left->empty())) return fail_interrupted();
  if (!left) return fail(left.error());
  const std::string& name = command.id.empty() ? command.name : command.id;
  if (command.json) {
    JsonWriter json;
    json.begin_object().field("cluster", name).key("left").begin_array();
    for (const std::string& line : *left) json.value(line);
    fmt::print("{}\n", json.end_array().end_object().text());
  } else if (left->empty()) {
    fmt::print("{}: down, nothing is left\n", name);
  } else {
    for (const std::string& line : *left) fmt::print("{}: left: {}\n", name, escape_controls(line));
    fmt::print(stderr,
               "pscloud: `pscloud cluster down {}` tries again; machines end themselves when they hear nothing\n",
               same_cluster(command));
  }
  return left->empty() ? kExitDone : kExitFailed;
}

}  // namespace

void add_cluster_down(CLI::App& verb, Action& action) {
  const auto command = std::make_shared<ClusterDownCommand>();
  verb.add_option("name", command->name, "`pscloud cluster ls` lists them")->type_name("NAME");
  verb.add_option("--id", command->id, "instead of a name")->type_name("ID");
  verb.add_option("--region", command->region, "with --id")->type_name("NAME");
  verb.add_option("--endpoint", command->endpoint, "with --id")->type_name("URL");
  verb.add_option("--timeout", command->timeout_s, "to wait for the end of each kind of thing [900]")
      ->type_name("SECONDS")
      ->check(CLI::Range(1, 86400));
  verb.add_option("--settle", command->settle_s, "what was made may be listed so late, by EC2 [10]")
      ->type_name("SECONDS")
      ->check(CLI::Range(0, 600));
  verb.add_flag("--json", command->json, "for programs");
  verb.footer(kClusterDownAbout);
  verb.callback([command, &action] { action = [command] { return run_cluster_down(*command); }; });
}

}  // namespace pscloud

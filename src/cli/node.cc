#include "pscloud/node.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/json.h"
#include "base/log.h"
#include "cli/exit_code.h"
#include "cli/signals.h"
#include "cli/verb.h"
#include "engine/node_variables.h"
#include "pscloud/environment.h"

namespace pscloud {
namespace {

constexpr const char* kNodeAbout = R"(Each flag can also be given in the environment: --heartbeat-ms as
PSCLOUD_HEARTBEAT_MS. A flag wins. DMLC_ROLE, DMLC_PS_ROOT_URI and the other
names of ps-lite are understood too (docs/node-environment.md).

When the node is up, one line on stdout says where. It ends when the job ends.

A job by hand, in three terminals of one machine. The first waits for one
server and one worker:

  pscloud node --role scheduler --scheduler 127.0.0.1:4000 --insecure

the second holds the parameters:

  pscloud node --role server --scheduler 127.0.0.1:4000 --insecure

the third is your program, which calls Worker::join():

  PSCLOUD_SCHEDULER=127.0.0.1:4000 PSCLOUD_INSECURE=1 ./my_worker

Between machines, give each node certificates by --tls-dir instead of
--insecure (`pscloud ca --help`), and servers a --listen others can reach.)";

struct NodeCommand {
  std::map<std::string, std::string> values;  // by variable, "PSCLOUD_ROLE"
  bool json = false;
  bool verbose = false;
  bool quiet = false;
};

// The flags, and where these are silent the environment.
Environment flags_over(const NodeCommand& flags, Environment environment) {
  return [&flags, environment = std::move(environment)](const char* name) -> std::optional<std::string> {
    const auto given = flags.values.find(name);
    return given == flags.values.end() ? environment(name) : given->second;
  };
}

// An error about a flag names the flag, not the variable that it stands for.
Error in_words_of_flags(Error error, const NodeCommand& flags) {
  for (const NodeVariable& variable : node_variables()) {
    const std::string name = variable.variable();
    if (flags.values.contains(name) && error.message.starts_with(name + " ")) {
      error.message.replace(0, name.size(), variable.flag());
    }
  }
  return error;
}

Result<NodeOptions> node_options(const NodeCommand& flags) {
  const Environment environment = flags_over(flags, process_environment());
  NodeOptions options;
  auto applied = apply_environment(environment, options);
  if (!applied) return in_words_of_flags(std::move(applied.error()), flags);
  if (!environment("PSCLOUD_ROLE") && !environment("DMLC_ROLE")) {
    return invalid("the role of this node is not given: choose --role scheduler or --role server");
  }
  if (options.role == Role::kWorker) {
    return invalid(
        "a worker is your own program: let it call Worker::join() and start it with PSCLOUD_SCHEDULER set; "
        "`pscloud node` runs schedulers and servers");
  }
  TRY(validate(options));
  return options;
}

void say_up(const NodeOptions& options, const Node& node, bool json) {
  const std::string_view role = role_name(options.role);
  if (json) {
    JsonWriter writer;
    writer.begin_object().field("role", role).field("address", node.address());
    writer.field("http_address", node.http_address()).end_object();
    fmt::print("{}\n", writer.text());
  } else {
    const std::string http = node.http_address();
    fmt::print("{} up at {}{}{}\n", role, node.address(), http.empty() ? "" : ", http at ", http);
  }
  std::fflush(stdout);  // whoever started us waits for this line
}

int run_node_command(const NodeCommand& flags) {
  const auto options = node_options(flags);
  if (!options) return fail(options.error());
  set_log_name(std::string(role_name(options->role)));
  if (flags.quiet) set_log_level(LogLevel::kWarning);
  if (flags.verbose) set_log_level(LogLevel::kDebug);

  Signals signals;
  const auto node = Node::start(*options);
  if (!node) return fail(node.error());
  say_up(*options, **node, flags.json);
  signals.watch([&node](int signal) {
    log_info("{}: leaving", signal == SIGINT ? "interrupted" : "told to end");
    (*node)->stop();
  });
  const auto ended = (*node)->wait();
  signals.end_watch();  // it must not outlive the node
  if (signals.received() != 0) return kExitInterrupted;
  return ended ? kExitDone : fail(ended.error());
}

struct Group {
  std::string_view whose;
  const char* title;
};
// Workers are no business of this verb; their flags work but are not shown, so that a script can give every node the
// same.
constexpr Group kGroups[] = {{"", "Every node"}, {"scheduler", "Scheduler"}, {"server", "Server"}, {"worker", ""}};

CLI::Option* add_flag_of(const NodeVariable& variable, const std::shared_ptr<NodeCommand>& flags, CLI::App& verb) {
  const auto set = [flags, name = variable.variable()](const std::string& value) { flags->values[name] = value; };
  if (*variable.placeholder == '\0') {
    return verb.add_flag_callback(
        variable.flag(), [set] { set("1"); }, variable.help);
  }
  const std::string_view value = variable.default_value;
  const std::string shown =
      value.empty() || variable.field == std::string_view("role") ? "" : fmt::format(" [{}]", value);
  return verb.add_option_function<std::string>(variable.flag(), set, variable.help + shown)
      ->type_name(variable.placeholder)
      ->take_last();
}

}  // namespace

void add_node(CLI::App& verb, Action& action) {
  const auto flags = std::make_shared<NodeCommand>();
  for (const Group& group : kGroups) {
    for (const NodeVariable& variable : node_variables()) {
      if (group.whose == variable.whose) add_flag_of(variable, flags, verb)->group(group.title);
    }
  }
  verb.add_flag("--json", flags->json, "the line that says where the node is, for programs")->group("Output");
  verb.add_flag("--verbose", flags->verbose, "log details")->group("Output");
  verb.add_flag("--quiet", flags->quiet, "log only what is wrong")->group("Output");
  verb.footer(kNodeAbout);
  verb.callback([flags, &action] { action = [flags] { return run_node_command(*flags); }; });
}

}  // namespace pscloud

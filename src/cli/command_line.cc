#include "cli/command_line.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "base/suggest.h"
#include "cli/exit_code.h"
#include "cli/train/dmlc_flags.h"
#include "cli/verb.h"

namespace pscloud {
namespace {

struct Verb {
  const char* name;
  const char* help;
  void (*add)(CLI::App& verb, Action& action);
};

constexpr const char* kPsdRun = "psd_run";

// In the order the help shows them.
constexpr Verb kVerbs[] = {
    {"train", "train a model as a config says", add_train},
    {"evaluate", "try a model on examples", add_evaluate},
    {"predict", "score examples by a model", add_predict},
    {"data", "make, look at and convert files of examples", add_data},
    {"run", "run servers and workers of any system, anywhere", add_run},
    {kPsdRun, "run a job of Poseidon (the name psd_run does the same)", add_psd_run},
    {"status", "list runs, and who is missing", add_status},
    {"logs", "what the tasks of a run have written", add_logs},
    {"connect", "a shell where a task runs", add_connect},
    {"stop", "stop a run", add_stop},
    {"down", "remove whatever killed launchers have left", add_down},
    {"cluster", "machines of Amazon EC2, made and taken down", add_cluster},
    {"console", "show runs in a browser", add_console},
    {"image", "an image of this program, for containers", add_image},
    {"ls", "list files, here or in S3", add_ls},
    {"cp", "copy files, from and to S3 too", add_cp},
    {"node", "run a scheduler or server of a job", add_node},
    {"rendezvous", "run a task that a submit file of yours starts", add_rendezvous},
    {"ca", "make the certificates of a cluster", add_ca},
    {"bench", "measure this machine and this program", add_bench},
    {"sim", "torture the protocol in a simulator", add_sim},
    {"controller", "looks after a run on a machine that stays", add_controller},
    {"task", "the agent of a launcher", add_task},
    {"queued-task", "the agent of a task that a queue has started", add_queued_task},
    {"version", "say what this program is", add_version},
};

constexpr const char* kAbout = R"(pscloud: a parameter server.
Workers compute, servers hold the parameters, a scheduler knows who is there.
)";

constexpr const char* kFooter = R"(`pscloud <verb> --help` tells more about a verb.

Exit codes: 0 done, 1 the job failed, 2 wrong usage or config,
            3 cluster not reachable, 130 interrupted)";

std::vector<CLI::App*> verbs_of(CLI::App& app) {
  return app.get_subcommands([](CLI::App*) { return true; });
}

std::vector<std::string> verb_names(CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* verb : verbs_of(app)) {
    if (!verb->get_group().empty()) names.push_back(verb->get_name());  // without a group it is not for people
  }
  return names;
}

std::vector<std::string> flag_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

std::string did_you_mean(const std::string& word, const std::vector<std::string>& known) {
  const std::string near = suggest(word, known);
  return near.empty() ? "" : fmt::format("; did you mean '{}'?", near);
}

// The verb that the words in front of the first flag name, and how it is called: "pscloud ca issue". The first word
// that is no verb, if any, is left in `unknown`.
struct Chosen {
  CLI::App* app = nullptr;
  std::string name = "pscloud";
  std::string unknown;
};
Chosen choose(CLI::App& app, int argc, const char* const* argv) {
  Chosen chosen;
  chosen.app = &app;
  for (int i = 1; i < argc && argv[i][0] != '-'; ++i) {
    const std::vector<CLI::App*> verbs = verbs_of(*chosen.app);
    if (verbs.empty()) break;
    const auto found = std::ranges::find(verbs, argv[i], &CLI::App::get_name);
    if (found == verbs.end()) {
      chosen.unknown = argv[i];
      break;
    }
    chosen.app = *found;
    chosen.name += std::string(" ") + argv[i];
  }
  return chosen;
}

std::string describe_extra(const Chosen& chosen) {
  const std::vector<std::string> extras = chosen.app->remaining(true);
  for (const std::string& extra : extras) {
    if (!extra.starts_with('-')) continue;
    const std::string flag = extra.substr(0, extra.find('='));
    return fmt::format("unknown flag '{}'{}", flag, did_you_mean(flag, flag_names(*chosen.app)));
  }
  return fmt::format("'{}' is one word too many", extras.empty() ? "" : extras.front());
}

// CLI11 says "--days: 1 required INT missing".
std::string describe_mismatch(std::string_view what) {
  if (!what.ends_with(" missing")) return std::string(what);
  return fmt::format("{} needs a value", what.substr(0, what.find(':')));
}

// CLI11 leaves more empty lines between groups than read well.
std::string squeeze(std::string text) {
  for (size_t at = 0; (at = text.find("\n\n\n", at)) != std::string::npos;) text.erase(at, 1);
  while (text.ends_with("\n\n")) text.pop_back();
  return text;
}

}  // namespace

int run_command_line(int argc, const char* const* argv) {
  // The name of Poseidon's own program is a door to a verb of ours.
  if (argc > 0 && std::filesystem::path(argv[0]).filename() == kPsdRun) {
    std::vector<const char*> arguments{"pscloud", kPsdRun};
    arguments.insert(arguments.end(), argv + 1, argv + argc);
    return run_command_line(static_cast<int>(arguments.size()), arguments.data());
  }
  if (const std::vector<std::string> words(argv + 1, argv + std::max(argc, 1)); begins_as_dmlc(words)) {
    const auto ours = through_the_old_door(words);
    if (!ours) return fail(ours.error());
    std::vector<const char*> arguments{argv[0]};
    for (const std::string& word : *ours) arguments.push_back(word.c_str());
    return run_command_line(static_cast<int>(arguments.size()), arguments.data());
  }
  CLI::App app(kAbout, "pscloud");
  Action action;
  app.option_defaults()->group("Flags");
  app.set_help_flag("-h,--help", "this text");
  app.get_formatter()->column_width(30);
  app.get_formatter()->label("OPTIONS", "FLAGS");
  app.get_formatter()->label("SUBCOMMAND", "VERB");
  app.get_formatter()->label("REQUIRED", "(required)");
  for (const Verb& verb : kVerbs) verb.add(*app.add_subcommand(verb.name, verb.help)->group("Verbs"), action);
  // Last, or the verbs would inherit it.
  app.set_version_flag("--version", fmt::format("pscloud {}", program_version()), "the version in one line");
  app.footer(kFooter);

  const Chosen chosen = choose(app, argc, argv);
  const std::string hint = fmt::format("`{} --help` tells more", chosen.name);
  if (!chosen.unknown.empty()) {
    return fail_usage(
        fmt::format("unknown verb '{}'{}", chosen.unknown, did_you_mean(chosen.unknown, verb_names(*chosen.app))),
        hint);
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    fmt::print("{}", squeeze(app.help()));
    return kExitDone;
  } catch (const CLI::CallForVersion& version) {
    fmt::print("{}\n", version.what());
    return kExitDone;
  } catch (const CLI::ExtrasError&) {
    return fail_usage(describe_extra(chosen), hint);
  } catch (const CLI::ArgumentMismatch& error) {
    return fail_usage(describe_mismatch(error.what()), hint);
  } catch (const CLI::ParseError& error) {
    return fail_usage(error.what(), hint);
  }
  if (!action)
    return fail_usage(fmt::format("a verb is missing: one of {}", fmt::join(verb_names(*chosen.app), ", ")), hint);
  return action();
}

}  // namespace pscloud

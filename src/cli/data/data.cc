#include <CLI/CLI.hpp>

#include "cli/data/data_verb.h"

namespace pscloud {

void add_data(CLI::App& verb, Action& action) {
  const auto add = [&](const char* name, const char* help, void (*fill)(CLI::App&, Action&)) {
    fill(*verb.add_subcommand(name, help)->group("Verbs"), action);
  };
  add("generate", "make up a click log", add_data_generate);
  add("head", "show the first examples of files", add_data_head);
  add("stats", "count what is in files", add_data_stats);
  add("convert", "write examples in another format", add_data_convert);
}

}  // namespace pscloud

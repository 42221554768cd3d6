#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/file_store.h"
#include "pscloud/error.h"

namespace CLI {
class App;
}
namespace PS::LM {
class Config;
}

namespace pscloud {

// What the verbs that learn are told: a config, and what is otherwise than it says.
struct ConfigFlags {
  std::string file;
  std::string appended;  // text
  std::vector<std::string> assignments;
  bool strict = false;  // a bad line ends the run
};

// CONF, --append, --set and --strict.
void add_config_flags(CLI::App& verb, ConfigFlags& flags, const char* about);

// The flags again, for another process.
std::vector<std::string> words_of(const ConfigFlags& flags);

// Fills it from a text, be it wrapped in `linear_method { ... }` or not.
Result<> parse_learning_config(std::string_view text, std::string_view name, PS::LM::Config& config);

// What a complaint about the values of a config is to begin with: where the field was said that the complaint begins
// with, "--set", "x.conf:6:24" or "--append:1:3"; the file alone if it was said nowhere.
std::string place_in_config(const ConfigFlags& flags, const std::string& complaint);

// Whether there are files that a field of the config names by these patterns. With the place in the config if not.
Result<> check_config_files(const ConfigFlags& flags, FileStore& store, std::span<const std::string> patterns,
                            const std::string& field);

// kInvalid with the place in the file.
Result<> read_config(const ConfigFlags& flags, PS::LM::Config& config);

}  // namespace pscloud

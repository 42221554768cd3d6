#pragma once

#include <string>
#include <string_view>
#include <vector>

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

// What a complaint about the values of a config is to begin with: the file, and the place in it of the field that the
// complaint begins with, if it is from there.
std::string place_in_config(const ConfigFlags& flags, const std::string& complaint);

// kInvalid with the place in the file.
Result<> read_config(const ConfigFlags& flags, PS::LM::Config& config);

}  // namespace pscloud

#pragma once

#include <string>
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
  std::vector<std::string> assignments;
  bool strict = false;  // a bad line ends the run
};

// CONF, --set and --strict.
void add_config_flags(CLI::App& verb, ConfigFlags& flags, const char* about);

// kInvalid with the place in the file.
Result<> read_config(const ConfigFlags& flags, PS::LM::Config& config);

}  // namespace pscloud

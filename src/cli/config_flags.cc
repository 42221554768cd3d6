#include "cli/config_flags.h"

#include <CLI/CLI.hpp>

#include "io/config_file.h"
#include "learn/config.pb.h"

namespace pscloud {

void add_config_flags(CLI::App& verb, ConfigFlags& flags, const char* about) {
  verb.add_option("config", flags.file, about)->type_name("CONF")->required();
  verb.add_option("--set", flags.assignments, "FIELD=VALUE instead of what the config says")
      ->type_name("FIELD=VALUE")
      ->allow_extra_args(false);
  verb.add_flag("--strict", flags.strict, "end at the first line that is no example");
}

Result<> read_config(const ConfigFlags& flags, PS::LM::Config& config) {
  TRY(read_config(*make_file_store(), flags.file, config));
  for (const std::string& one : flags.assignments) TRY(set_config_field(one, config).at("--set"));
  return {};
}

}  // namespace pscloud

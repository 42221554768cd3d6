#include "cli/evaluation_flags.h"

#include "io/file_pattern.h"
#include "learn/config.pb.h"

namespace pscloud {

Result<EvaluationSettings> read_evaluation_settings(const ConfigFlags& flags) {
  PS::LM::Config config;
  TRY(read_config(flags, config));
  EvaluationSettings settings = TRY(evaluation_settings(config).at(flags.file));
  settings.strict = flags.strict;
  const auto store = make_file_store();
  TRY(find_files(*store, settings.model_files));
  TRY(find_files(*store, settings.files));
  return settings;
}

}  // namespace pscloud

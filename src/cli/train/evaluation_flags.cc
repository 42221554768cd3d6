#include "cli/train/evaluation_flags.h"

#include "learn/config.pb.h"

namespace pscloud {

Result<EvaluationSettings> read_evaluation_settings(const ConfigFlags& flags) {
  PS::LM::Config config;
  TRY(read_config(flags, config));
  auto checked = evaluation_settings(config);
  const std::string place = checked ? "" : place_in_config(flags, checked.error().message);
  EvaluationSettings settings = TRY(std::move(checked).at(place));
  settings.strict = flags.strict;
  return settings;
}

Result<> check_evaluation_files(const ConfigFlags& flags, const EvaluationSettings& settings,
                                const Cancelled& cancelled) {
  const auto store = make_file_store(cancelled);
  TRY(check_config_files(flags, *store, settings.model_files, "model_input.file"));
  return check_config_files(flags, *store, settings.files, "validation_data.file");
}

}  // namespace pscloud

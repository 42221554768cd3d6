#include "cli/train/evaluation_flags.h"

#include "io/file_pattern.h"
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

Result<> check_evaluation_files(const EvaluationSettings& settings, const Cancelled& cancelled) {
  const auto store = make_file_store(cancelled);
  TRY(find_files(*store, settings.model_files));
  TRY(find_files(*store, settings.files));
  return {};
}

}  // namespace pscloud

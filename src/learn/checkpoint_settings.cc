#include "learn/checkpoint_settings.h"

#include "io/config_file.h"
#include "learn/config.pb.h"

namespace pscloud {

using PS::LM::Config;

namespace {

// Where results go, how often something is told, and how long it goes on may change from one run to the next.
Config decisive_part(Config config) {
  config.clear_validation_data();
  config.clear_model_output();
  config.clear_checkpoint();
  if (config.has_async_sgd()) {
    config.mutable_async_sgd()->clear_report_interval();
    config.mutable_async_sgd()->clear_num_data_pass();
    config.mutable_async_sgd()->clear_data_buf();
    config.mutable_async_sgd()->clear_local_cache();
    config.mutable_async_sgd()->clear_cache_passes();
  }
  if (config.has_darlin()) {
    config.mutable_darlin()->clear_max_pass_of_data();
    config.mutable_darlin()->clear_local_cache();
    config.mutable_darlin()->clear_save_model_every_n_iter();
    config.mutable_darlin()->clear_max_num_parallel_groups_in_preprocessing();
    config.mutable_darlin()->clear_max_data_buf_size_in_mb();
  }
  return config;
}

}  // namespace

Result<CheckpointSettings> checkpoint_settings(const Config& config) {
  const PS::LM::CheckpointConfig& checkpoint = config.checkpoint();
  if (config.has_checkpoint() && checkpoint.folder().empty()) {
    return invalid("checkpoint.folder is missing: where shall they go?");
  }
  if (checkpoint.every_seconds() < 0) {
    return invalid("checkpoint.every_seconds is {}, must be 0 or more", checkpoint.every_seconds());
  }
  if (checkpoint.keep() < 1) return invalid("checkpoint.keep is {}, must be 1 or more", checkpoint.keep());
  return CheckpointSettings{.folder = checkpoint.folder(),
                            .every_seconds = static_cast<uint32_t>(checkpoint.every_seconds()),
                            .keep = static_cast<uint32_t>(checkpoint.keep()),
                            .resume = false,
                            .config = config_text(decisive_part(config))};
}

Result<> check_same_settings(const Config& before, const std::string& now) {
  Config ours;
  TRY(parse_config(now, "settings", ours));
  const std::string differences = config_differences(before, ours);
  if (differences.empty()) return {};
  return invalid("it was made with other settings, which would change the result: {}", differences);
}

}  // namespace pscloud

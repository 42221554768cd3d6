#pragma once

#include <cstdint>
#include <string>

#include "pscloud/error.h"

namespace PS::LM {
class Config;
}

namespace pscloud {

// What a config says about checkpoints, checked and in our own words.
struct CheckpointSettings {
  std::string folder;  // empty: there are none
  uint32_t every_seconds = 60;
  uint32_t keep = 2;
  bool resume = false;  // go on from the newest
  std::string config;   // that part of the config which changes the result, as text

  bool enabled() const { return !folder.empty(); }
};

Result<CheckpointSettings> checkpoint_settings(const PS::LM::Config& config);

// kInvalid names the settings that are others than they were when the checkpoint was written.
Result<> check_same_settings(const PS::LM::Config& before, const std::string& now);

}  // namespace pscloud

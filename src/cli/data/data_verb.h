#pragma once

#include "cli/verb.h"

namespace pscloud {

// The verbs of `pscloud data`.
void add_data_convert(CLI::App& verb, Action& action);
void add_data_generate(CLI::App& verb, Action& action);
void add_data_head(CLI::App& verb, Action& action);
void add_data_stats(CLI::App& verb, Action& action);

}  // namespace pscloud

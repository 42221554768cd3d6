#pragma once

#include "cli/verb.h"

namespace pscloud {

// The verbs of `pscloud cluster`.
void add_cluster_up(CLI::App& verb, Action& action);
void add_cluster_ls(CLI::App& verb, Action& action);
void add_cluster_show(CLI::App& verb, Action& action);
void add_cluster_keep(CLI::App& verb, Action& action);
void add_cluster_down(CLI::App& verb, Action& action);

}  // namespace pscloud

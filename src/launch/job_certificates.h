#pragma once

#include "launch/plan.h"

namespace pscloud {

// Gives the tasks of each role a certificate of that role, and PSCLOUD_TLS_DIR that names its folder: our nodes then
// trust each other and nobody else. The CA is made for this job, and its key is gone when this returns.
Result<> add_certificates(Job& job);

// It has nodes of ours, for some role runs `pscloud node` or there is a scheduler of ours, and nobody says how they are
// to trust each other: PSCLOUD_TLS_DIR and PSCLOUD_INSECURE are not set.
bool wants_certificates(const Job& job);

}  // namespace pscloud

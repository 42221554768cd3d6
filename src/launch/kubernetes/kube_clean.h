#pragma once

#include <string>
#include <vector>

#include "launch/kubernetes/kube_manifest.h"
#include "launch/ledger.h"
#include "launch/plan.h"

namespace pscloud {

inline constexpr const char* kKubeEntry = "kubernetes";  // the ledger's word: {"server", "namespace", "job"}

// Removes all that a job has in the cluster, found by its label, waits until its pods have ended, and checks that
// nothing is there. The lines name what is left.
Result<std::vector<std::string>> clean_kubernetes(const KubeOptions& options, const Plan& plan, Ledger& ledger);

}  // namespace pscloud

#pragma once

#include <chrono>
#include <string>

#include "base/fd.h"

namespace pscloud {

// The copies of this program that launchers bring to a machine (ssh_connection.cc): a folder for each build, called by
// its hash, whole if it has the file "ready", whose time is that of the last use. Home folders may be shared by
// machines, and launchers work at the same time.

// A copy that was not used for so long may be removed, but for the newest few.
inline constexpr std::chrono::days kBundleKept{1};
inline constexpr size_t kBundlesKept = 3;

// Holds the copy that this process runs from for as long as it lives: nobody removes it, here or on a machine that has
// the same home. Nothing if it runs from elsewhere.
Fd hold_own_bundle();

// Removes the copies that nobody holds and that are neither new nor used lately, and what others have left half made.
// Returns how many copies.
int prune_bundles(const std::string& cache_folder, std::chrono::file_clock::time_point now);

}  // namespace pscloud

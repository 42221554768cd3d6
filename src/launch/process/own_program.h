#pragma once

#include <string>
#include <vector>

namespace pscloud {

// The words in front of the arguments of a command line that runs this very program again. More than one where it was
// started out of a bundle (bundle.h), by a loader of its own.
std::vector<std::string> own_program();

// The file that holds this program: not the loader that runs it.
std::string own_binary();

// As `pscloud --version` says it: "0.1.0".
const char* own_version();

}  // namespace pscloud

#pragma once

#include <string>
#include <vector>

#include "pscloud/error.h"

namespace pscloud {

// This program with all that it needs to run on a machine of the same kind that has none of its libraries: the binary,
// the shared libraries that are loaded into this process, and the loader, all in one folder without folders in it.
// Without what only debuggers read (elf.h).
struct Bundle {
  struct File {
    std::string name;  // in the bundle: "pscloud", "libssl.so.3", "ld-linux-x86-64.so.2"
    std::string path;  // here
  };
  std::vector<File> files;
  std::string loader;  // the name of one of them
  std::string hash;    // of names and contents, as they are sent: of another build, another
};

Result<Bundle> own_bundle();

// The words that run the program where the bundle is in `folder`.
std::vector<std::string> bundle_command(const Bundle& bundle, const std::string& folder);

// Puts copies into `folder`, which is there.
Result<> copy_bundle(const Bundle& bundle, const std::string& folder);
// The same as a tar file (POSIX.1-1988), all readable, binary and loader executable.
Result<std::string> bundle_tar(const Bundle& bundle);

}  // namespace pscloud

#pragma once

#include <string>
#include <vector>

#include "pscloud/error.h"

namespace pscloud {

struct TarFile {
  std::string path;  // "usr/bin/pscloud"; a folder if it ends in '/'
  std::string content = {};
  int mode = 0644;
};

// POSIX tar (ustar): everything of user 0, at time 0. kInvalid for a path that is too long for it.
Result<std::string> tar_archive(const std::vector<TarFile>& files);

}  // namespace pscloud

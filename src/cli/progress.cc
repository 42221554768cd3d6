#include "cli/progress.h"

#include <fmt/core.h>
#include <unistd.h>

#include <cstdio>

namespace pscloud {

Progress::Progress() : seen_(::isatty(STDERR_FILENO) != 0) {}

Progress::~Progress() {
  if (seen_) fmt::print(stderr, "\r\033[K");
}

void Progress::show(std::string_view text) {
  if (seen_) fmt::print(stderr, "\r\033[K{}", text);
}

}  // namespace pscloud

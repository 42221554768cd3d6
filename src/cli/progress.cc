#include "cli/progress.h"

#include <fmt/core.h>
#include <unistd.h>

#include <cstdio>

namespace pscloud {

ProgressLine::ProgressLine() : seen_(::isatty(STDERR_FILENO) != 0) {}

ProgressLine::~ProgressLine() {
  if (seen_) fmt::print(stderr, "\r\033[K");
}

void ProgressLine::show(std::string_view text) {
  if (seen_) fmt::print(stderr, "\r\033[K{}", text);
}

}  // namespace pscloud

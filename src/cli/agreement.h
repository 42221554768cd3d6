#pragma once

#include "cli/local/line_channel.h"

namespace pscloud {

// Asks a question on stderr, whose answer comes over `fd` as a line: true if it begins with y. Comes back soon once
// `cancelled` says so, and then nothing is agreed to, whatever was answered.
bool agrees(const char* question, int fd, const Cancelled& cancelled);

}  // namespace pscloud

#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace pscloud::detail {

void check_failed(const char* file, int line, const char* condition, const std::string& message) {
  // Not through the log: it may be what broke.
  std::fprintf(stderr, "pscloud: bug at %s:%d: %s does not hold%s%s\n", file, line, condition,
               message.empty() ? "" : ": ", message.c_str());
  std::abort();
}

}  // namespace pscloud::detail

#include "launch/process/write_all.h"

#include <unistd.h>

#include <cerrno>

#include "base/fd.h"

namespace pscloud {

Result<> write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t wrote = ::write(fd, bytes.data(), bytes.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return unavailable("cannot write it: {}", errno_text(errno));
    bytes.remove_prefix(static_cast<size_t>(wrote));
  }
  return {};
}

}  // namespace pscloud

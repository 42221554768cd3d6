#include "launch/process/read_to_end.h"

#include <unistd.h>

#include <cerrno>

#include "base/fd.h"

namespace pscloud {

Result<std::string> read_to_end(int fd, size_t bytes_max) {
  std::string text;
  char buffer[16384];
  while (true) {
    const ssize_t got = ::read(fd, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return unavailable("cannot read it: {}", errno_text(errno));
    if (got == 0) return text;
    text.append(buffer, static_cast<size_t>(got));
    if (text.size() > bytes_max) return corrupt("it is longer than {} bytes", bytes_max);
  }
}

}  // namespace pscloud

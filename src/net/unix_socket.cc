#include "net/unix_socket.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>

namespace pscloud {
namespace {

constexpr int kUnixBacklog = 16;

// An address that holds as long as its folder is open.
struct PathAddress {
  Fd folder;
  sockaddr_un address{};

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address); }
};

Result<PathAddress> path_address(const std::string& path) {
  const size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  PathAddress result;
  result.folder = Fd(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!result.folder) return unavailable("cannot open the folder '{}': {}", folder, errno_text(errno));
  const std::string name =
      fmt::format("/proc/self/fd/{}/{}", result.folder.get(), path.substr(slash == std::string::npos ? 0 : slash + 1));
  if (name.size() >= sizeof result.address.sun_path) return invalid("the name of the socket '{}' is too long", path);
  result.address.sun_family = AF_UNIX;
  std::memcpy(result.address.sun_path, name.c_str(), name.size() + 1);
  return result;
}

}  // namespace

Result<Fd> listen_at_path(const std::string& path) {
  const PathAddress address = TRY(path_address(path));
  Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket) return unavailable("cannot make a socket: {}", errno_text(errno));
  if (::bind(socket.get(), address.get(), sizeof address.address) != 0) {
    if (errno == EADDRINUSE) return invalid("'{}' is there already", path);
    return unavailable("cannot make the socket '{}': {}", path, errno_text(errno));
  }
  if (::listen(socket.get(), kUnixBacklog) != 0)
    return unavailable("cannot listen at '{}': {}", path, errno_text(errno));
  return socket;
}

Result<Fd> connect_to_path(const std::string& path) {
  const PathAddress address = TRY(path_address(path));
  Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return unavailable("cannot make a socket: {}", errno_text(errno));
  if (::connect(socket.get(), address.get(), sizeof address.address) != 0) {
    return unavailable("cannot connect to '{}': {}", path, errno_text(errno));
  }
  return socket;
}

}  // namespace pscloud

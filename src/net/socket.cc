#include "net/socket.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <memory>
#include <system_error>

namespace pscloud {
namespace {

constexpr int kBacklog = 1024;
constexpr int kUserTimeoutMs = 10000;

Fd open_socket(const Endpoint& endpoint) {
  return Fd(socket(endpoint.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

void set_option(int fd, int level, int option, int value) { setsockopt(fd, level, option, &value, sizeof value); }

sockaddr* writable(Endpoint& endpoint) { return reinterpret_cast<sockaddr*>(&endpoint.storage); }

// Host and port as numbers.
Address address_of(const Endpoint& endpoint) {
  if (endpoint.storage.ss_family == AF_UNIX) return {"localhost", 0};
  char host[NI_MAXHOST] = "";
  char port[NI_MAXSERV] = "0";
  getnameinfo(endpoint.get(), endpoint.size, host, sizeof host, port, sizeof port, NI_NUMERICHOST | NI_NUMERICSERV);
  return {host, static_cast<uint16_t>(std::stoi(port))};
}

Result<std::vector<Endpoint>> look_up(const Address& address, bool to_listen) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | (to_listen ? AI_PASSIVE : 0);
  addrinfo* found = nullptr;
  const int failed = getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &hints, &found);
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, freeaddrinfo);
  if (failed != 0) {
    const char* why = failed == EAI_SYSTEM ? std::strerror(errno) : gai_strerror(failed);
    return unavailable("{}: cannot find the host: {}", address.text(), why);
  }
  std::vector<Endpoint> endpoints;
  for (const addrinfo* info = found; info != nullptr; info = info->ai_next) {
    Endpoint& endpoint = endpoints.emplace_back();
    std::memcpy(&endpoint.storage, info->ai_addr, info->ai_addrlen);
    endpoint.size = info->ai_addrlen;
  }
  return endpoints;
}

}  // namespace

std::string Endpoint::host() const { return address_of(*this).host; }
std::string Endpoint::text() const {
  if (size > 0 && storage.ss_family == AF_UNIX) return "this machine";
  return size == 0 ? "unknown" : address_of(*this).text();
}

Result<std::vector<Endpoint>> resolve(const Address& address, bool to_listen) {
  auto endpoints = look_up(address, to_listen);
  if (endpoints || !to_listen) return endpoints;
  // A pod of Kubernetes listens at "pod.service", which the cluster's DNS knows a second after the pod has started.
  // "pod" is its host name, which it knows itself.
  std::array<char, 256> own{};
  if (gethostname(own.data(), own.size() - 1) != 0 || !address.host.starts_with(std::string(own.data()) + ".")) {
    return endpoints;
  }
  auto of_machine = look_up({own.data(), address.port}, true);
  return of_machine && !is_loopback(of_machine->front().host()) ? of_machine : endpoints;
}

Result<Fd> listen_on(const Endpoint& endpoint) {
  Fd fd = open_socket(endpoint);
  const auto failed = [&] { return unavailable("cannot listen on {}: {}", endpoint.text(), errno_text(errno)); };
  if (!fd) return failed();
  // A node that starts again must not wait for old connections to be forgotten.
  set_option(fd.get(), SOL_SOCKET, SO_REUSEADDR, 1);
  if (bind(fd.get(), endpoint.get(), endpoint.size) != 0) return failed();
  if (listen(fd.get(), kBacklog) != 0) return failed();
  return fd;
}

Endpoint local_endpoint(int fd) {
  Endpoint endpoint{.size = sizeof(sockaddr_storage)};
  if (getsockname(fd, writable(endpoint), &endpoint.size) != 0) endpoint.size = 0;
  return endpoint;
}

Endpoint remote_endpoint(int fd) {
  Endpoint endpoint{.size = sizeof(sockaddr_storage)};
  if (getpeername(fd, writable(endpoint), &endpoint.size) != 0) endpoint.size = 0;
  return endpoint;
}

Result<Fd> begin_connect(const Endpoint& endpoint) {
  Fd fd = open_socket(endpoint);
  if (!fd || (connect(fd.get(), endpoint.get(), endpoint.size) != 0 && errno != EINPROGRESS)) {
    return unavailable("{}", errno_text(errno));
  }
  return fd;
}

Result<> end_connect(int fd) {
  int error = 0;
  socklen_t size = sizeof error;
  if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
  if (error != 0) return unavailable("{}", errno_text(error));
  // A socket that calls a free local port can get that very port for itself and so reach itself.
  const Endpoint remote = remote_endpoint(fd);
  if (remote.storage.ss_family != AF_UNIX && local_endpoint(fd).text() == remote.text())
    return unavailable("{}", errno_text(ECONNREFUSED));
  return {};
}

void set_lane_options(int fd) {
  set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  set_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, kUserTimeoutMs);
}

Endpoint unix_endpoint(const std::string& name) {
  Endpoint endpoint;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  // A name that begins with a zero stands in no folder and is gone with the socket.
  const size_t size = std::min(name.size(), sizeof address.sun_path - 1);
  std::memcpy(address.sun_path + 1, name.data(), size);
  endpoint.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + size);
  std::memcpy(&endpoint.storage, &address, endpoint.size);
  return endpoint;
}

bool same_user(int fd) {
  ucred peer{};
  socklen_t size = sizeof peer;
  return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == geteuid();
}

void ring(int eventfd) {
  const uint64_t one = 1;
  (void)!write(eventfd, &one, sizeof one);  // full means rung
}

}  // namespace pscloud

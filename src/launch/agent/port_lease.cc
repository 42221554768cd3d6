#include "launch/agent/port_lease.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <fstream>

#include "net/socket.h"

namespace pscloud {
namespace {

// Bound on all interfaces, of both kinds of addresses where there are two; nothing listens, so who calls is refused.
Fd bind_port(uint16_t port) {
  Fd both(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (both) {
    const int off = 0;
    ::setsockopt(both.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    sockaddr_in6 any{};
    any.sin6_family = AF_INET6;
    any.sin6_port = htons(port);
    if (::bind(both.get(), reinterpret_cast<const sockaddr*>(&any), sizeof any) == 0) return both;
    if (errno != EADDRNOTAVAIL) return {};
  }
  Fd old(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in any{};
  any.sin_family = AF_INET;
  any.sin_port = htons(port);
  if (!old || ::bind(old.get(), reinterpret_cast<const sockaddr*>(&any), sizeof any) != 0) return {};
  return old;
}

Fd bind_name(uint16_t port) {
  const Endpoint name = unix_endpoint("pscloud-port-" + std::to_string(port));
  Fd fd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!fd || ::bind(fd.get(), name.get(), name.size) != 0) return {};
  return fd;
}

}  // namespace

PortRange leased_ports() {
  PortRange range;
  std::ifstream file("/proc/sys/net/ipv4/ip_local_port_range");
  int low = 0, high = 0;
  if (!(file >> low >> high) || high < range.low || low > range.high) return range;
  // The larger part beside the kernel's; where nothing is left, a port that may be taken is better than none.
  const int below = low - range.low, above = range.high - high;
  if (below >= above && below > 0) return {range.low, static_cast<uint16_t>(low - 1)};
  if (above > 0) return {static_cast<uint16_t>(high + 1), range.high};
  return range;
}

Result<PortLease> PortLease::take(Random& random, PortRange range) {
  const int count = range.high - range.low + 1;
  // From a random one on, so that jobs that start together rarely meet.
  const auto first = static_cast<int>(random.below(static_cast<uint64_t>(count)));
  for (int i = 0; i < count; ++i) {
    const auto port = static_cast<uint16_t>(range.low + (first + i) % count);
    Fd name = bind_name(port);
    if (!name) continue;
    Fd bound = bind_port(port);
    if (bound) return PortLease(port, std::move(name), std::move(bound));
  }
  if (count == 1) return unavailable("the port {} is taken by another program of this machine", range.low);
  return unavailable("all ports from {} to {} are taken", range.low, range.high);
}

}  // namespace pscloud

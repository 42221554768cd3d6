#include "launch/agent/own_address.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <memory>

#include "net/socket.h"

namespace pscloud {
namespace {

// Of RFC 5737, where nobody is: only the way there is asked for.
constexpr const char* kElsewhere = "192.0.2.1";
constexpr uint16_t kAnyPort = 9;

using Interfaces = std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)>;

Interfaces all_interfaces() {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) list = nullptr;
  return {list, ::freeifaddrs};
}

std::string host_of(const sockaddr* address) {
  Endpoint endpoint;
  endpoint.size = address->sa_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  std::copy_n(reinterpret_cast<const char*>(address), endpoint.size, reinterpret_cast<char*>(&endpoint.storage));
  return endpoint.host();
}

bool is_up(const ifaddrs& interface) { return interface.ifa_addr != nullptr && (interface.ifa_flags & IFF_UP) != 0; }

// Its first address of the older kind, else of the newer.
std::string address_of_interface(const std::string& name, bool& known) {
  const Interfaces interfaces = all_interfaces();
  for (const int family : {AF_INET, AF_INET6}) {
    for (const ifaddrs* each = interfaces.get(); each != nullptr; each = each->ifa_next) {
      if (name != each->ifa_name) continue;
      known = true;
      if (is_up(*each) && each->ifa_addr->sa_family == family) return host_of(each->ifa_addr);
    }
  }
  return "";
}

std::string any_outer_address() {
  const Interfaces interfaces = all_interfaces();
  for (const ifaddrs* each = interfaces.get(); each != nullptr; each = each->ifa_next) {
    if (is_up(*each) && each->ifa_addr->sa_family == AF_INET && (each->ifa_flags & IFF_LOOPBACK) == 0) {
      return host_of(each->ifa_addr);
    }
  }
  return "";
}

}  // namespace

std::string address_towards(const std::string& host) {
  const auto endpoints = resolve({host, kAnyPort}, false);
  if (!endpoints) return "";
  for (const Endpoint& endpoint : *endpoints) {
    const Fd fd(::socket(endpoint.storage.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (fd && ::connect(fd.get(), endpoint.get(), endpoint.size) == 0) return local_endpoint(fd.get()).host();
  }
  return "";
}

Result<std::string> own_address(const std::string& wanted) {
  bool is_interface = false;
  std::string address = wanted.empty() ? "" : address_of_interface(wanted, is_interface);
  if (is_interface && address.empty()) return not_found("the interface '{}' has no address, or is down", wanted);
  if (is_interface) return address;
  if (!wanted.empty()) return wanted;
  address = address_towards(kElsewhere);
  if (address.empty()) address = any_outer_address();
  return address.empty() ? std::string("127.0.0.1") : address;
}

std::string own_host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return "localhost";
  return name.data();
}

}  // namespace pscloud

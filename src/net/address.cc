#include "net/address.h"

#include <arpa/inet.h>

#include <array>
#include <cstring>
#include <optional>

#include "base/text.h"

namespace pscloud {
namespace {

using Ip6 = std::array<uint8_t, 16>;

// An IPv4 address as ::ffff:a.b.c.d, so that both spellings of it are judged alike. None for a name.
std::optional<Ip6> parse_ip(std::string_view host) {
  const std::string text(host.substr(0, host.find('%')));  // "fe80::1%eth0" names the interface too
  Ip6 ip{};
  if (inet_pton(AF_INET6, text.c_str(), ip.data()) == 1) return ip;
  ip[10] = ip[11] = 0xff;
  if (inet_pton(AF_INET, text.c_str(), ip.data() + 12) == 1) return ip;
  return std::nullopt;
}

bool is_ip4(const Ip6& ip) {
  static constexpr Ip6 kMapped{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  return std::memcmp(ip.data(), kMapped.data(), 12) == 0;
}

bool is_loopback_ip(const Ip6& ip) {
  static constexpr Ip6 kOne{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
  return is_ip4(ip) ? ip[12] == 127 : ip == kOne;
}

}  // namespace

std::string Address::text() const {
  return host.find(':') == std::string::npos ? fmt::format("{}:{}", host, port) : fmt::format("[{}]:{}", host, port);
}

Result<Address> parse_address(std::string_view text) {
  const auto wrong = [&](std::string_view why) {
    return invalid("\"{}\" is not an address: {}; write host:port, 10.0.0.7:4000 or [::1]:4000", text, why);
  };
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return wrong("it has no port");
  std::string_view host = text.substr(0, colon);
  const std::string_view digits = text.substr(colon + 1);

  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
    if (host.find(':') == std::string_view::npos) return wrong("brackets are for IPv6 addresses");
  } else if (host.find(':') != std::string_view::npos) {
    return wrong("an IPv6 address stands in brackets");
  }
  if (host.empty()) return wrong("it has no host");
  if (host.find_first_of(" \t\r\n/[]@") != std::string_view::npos) return wrong("its host has a character no host has");

  uint16_t port = 0;
  if (!parse_number(digits, uint16_t{0}, uint16_t{65535}, port)) {
    return wrong("its port is not a number from 0 to 65535");
  }
  return Address{std::string(host), port};
}

bool is_loopback(std::string_view host) {
  if (host == "localhost") return true;
  const auto ip = parse_ip(host);
  return ip && is_loopback_ip(*ip);
}

bool is_private(std::string_view host) {
  if (is_loopback(host)) return true;
  const auto parsed = parse_ip(host);
  if (!parsed) return false;
  const Ip6& ip = *parsed;
  if (is_ip4(ip)) {
    const uint8_t a = ip[12];
    const uint8_t b = ip[13];
    return a == 10 || (a == 172 && (b & 0xf0) == 16) || (a == 192 && b == 168) ||  // RFC 1918
           (a == 100 && (b & 0xc0) == 64) ||                                       // RFC 6598
           (a == 169 && b == 254);                                                 // link-local
  }
  return (ip[0] & 0xfe) == 0xfc ||                   // RFC 4193
         (ip[0] == 0xfe && (ip[1] & 0xc0) == 0x80);  // link-local
}

}  // namespace pscloud

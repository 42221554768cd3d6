#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "pscloud/error.h"

namespace pscloud {

// "host:port", "[::1]:port".
struct Address {
  std::string host;
  uint16_t port = 0;

  std::string text() const;  // IPv6 hosts in brackets
  bool operator==(const Address&) const = default;
};

// kInvalid says what an address looks like.
Result<Address> parse_address(std::string_view text);

// 127.0.0.0/8, ::1, localhost.
bool is_loopback(std::string_view host);
// Loopback, or one of the ranges of RFC 1918, RFC 6598 and RFC 4193, or link-local.
bool is_private(std::string_view host);

}  // namespace pscloud

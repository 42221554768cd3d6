#pragma once

#include <string>

#include "pscloud/error.h"

namespace pscloud {

// The host part of the address at which others reach this machine. `wanted` is an interface's name ("eth0"), whose
// address is taken, or a name or address as it is; empty: the address that packets to elsewhere leave from, which is
// not that of a bridge for containers. kNotFound if the interface has none.
Result<std::string> own_address(const std::string& wanted);

// The address from which packets to `host` leave, none sent; empty if there is no way.
std::string address_towards(const std::string& host);

std::string own_host_name();

}  // namespace pscloud

#pragma once

#include <functional>
#include <string>

#include "cli/cloud/controller_client.h"

namespace pscloud {

// Opens the page of a controller to browsers of this machine until Ctrl-C, at 127.0.0.1:PORT (0: a free one): through
// ssh, or over TLS by an authority that browsers need not know. What answers on this machine in the clear anyway is
// shown where it is. `show` gets the address, with the token behind '#'. The exit code.
int serve_controller(const ControllerFlags& flags, int port, const std::function<void(const std::string& url)>& show);

}  // namespace pscloud

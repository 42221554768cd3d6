#pragma once

#include <functional>
#include <string>

#include "cli/cloud/controller_client.h"

namespace pscloud {

// Opens the page of a controller to browsers of this machine until Ctrl-C: at 127.0.0.1:PORT (0: a free one) through
// ssh, or, of one that everybody reaches, at its own address. `show` gets that address, with the token behind '#'. The
// exit code.
int serve_controller(const ControllerFlags& flags, int port, const std::function<void(const std::string& url)>& show);

}  // namespace pscloud

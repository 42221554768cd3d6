#pragma once

#include <openssl/err.h>

#include <string>

namespace pscloud {

// Why OpenSSL's last call in this thread failed, for people. What it said before is forgotten with it.
inline std::string openssl_reason() {
  const char* reason = ERR_reason_error_string(ERR_get_error());
  ERR_clear_error();
  return reason != nullptr ? reason : "unknown reason";
}

}  // namespace pscloud

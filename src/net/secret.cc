#include "net/secret.h"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/rand.h>

#include <cstdint>

#include "base/check.h"

namespace pscloud {

std::string make_secret() {
  uint8_t bytes[32];
  CHECK(RAND_bytes(bytes, sizeof bytes) == 1, "there is no chance to be had from OpenSSL");
  std::string text;
  for (const uint8_t byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

bool is_secret(std::string_view text, std::string_view secret) {
  return text.size() == secret.size() && CRYPTO_memcmp(text.data(), secret.data(), secret.size()) == 0;
}

}  // namespace pscloud

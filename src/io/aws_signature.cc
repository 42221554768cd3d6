#include "io/aws_signature.h"

#include <fmt/chrono.h>
#include <fmt/core.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>
#include <array>

#include "base/check.h"

namespace pscloud {
namespace {

constexpr std::string_view kSignatureKind = "AWS4-HMAC-SHA256";

std::string hex_of(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) text += fmt::format("{:02x}", static_cast<uint8_t>(byte));
  return text;
}

std::string hmac_sha256(std::string_view key, std::string_view text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> out{};
  unsigned size = 0;
  const auto* made = HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
                          reinterpret_cast<const unsigned char*>(text.data()), text.size(), out.data(), &size);
  CHECK(made != nullptr, "no HMAC-SHA256");
  return {reinterpret_cast<const char*>(out.data()), size};
}

bool is_unreserved(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
         c == '.' || c == '~';
}

std::string percent_encoded(std::string_view text, bool keep_slash) {
  std::string encoded;
  for (const char c : text) {
    if (is_unreserved(c) || (keep_slash && c == '/')) {
      encoded += c;
    } else {
      encoded += fmt::format("%{:02X}", static_cast<uint8_t>(c));
    }
  }
  return encoded;
}

// Without spaces at its ends, and with one for several: proxies may change them.
std::string trimmed(std::string_view value) {
  std::string text;
  for (const char c : value) {
    if (c != ' ' || (!text.empty() && text.back() != ' ')) text += c;
  }
  if (text.ends_with(' ')) text.pop_back();
  return text;
}

}  // namespace

std::string sha256_hex(std::string_view bytes) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> out{};
  unsigned size = 0;
  const int made = EVP_Digest(bytes.data(), bytes.size(), out.data(), &size, EVP_sha256(), nullptr);
  CHECK(made == 1, "no SHA-256");
  return hex_of({reinterpret_cast<const char*>(out.data()), size});
}

std::string encoded_path(std::string_view path) { return percent_encoded(path, true); }

std::string encoded_query(const TextPairs& query) {
  TextPairs encoded;
  for (const auto& [name, value] : query) {
    encoded.emplace_back(percent_encoded(name, false), percent_encoded(value, false));
  }
  std::ranges::sort(encoded);
  std::string text;
  for (const auto& [name, value] : encoded) text += fmt::format("{}{}={}", text.empty() ? "" : "&", name, value);
  return text;
}

TextPairs aws_signature(const AwsRequest& request, const AwsCredentials& credentials, std::string_view region,
                        std::string_view service, std::chrono::sys_seconds now) {
  const std::string stamp = fmt::format("{:%Y%m%dT%H%M%SZ}", fmt::gmtime(std::chrono::system_clock::to_time_t(now)));
  const std::string day = stamp.substr(0, 8);
  TextPairs added{{"x-amz-date", stamp}};
  if (!credentials.session_token.empty()) added.emplace_back("x-amz-security-token", credentials.session_token);

  TextPairs headers = request.headers;
  headers.insert(headers.end(), added.begin(), added.end());
  headers.emplace_back("host", request.host);
  std::ranges::sort(headers);
  std::string lines;
  std::string names;
  for (const auto& [name, value] : headers) {
    lines += fmt::format("{}:{}\n", name, trimmed(value));
    names += (names.empty() ? "" : ";") + name;
  }
  const std::string canonical = fmt::format("{}\n{}\n{}\n{}\n{}\n{}", request.method, encoded_path(request.path),
                                            encoded_query(request.query), lines, names, request.payload_hash);
  const std::string scope = fmt::format("{}/{}/{}/aws4_request", day, region, service);
  const std::string to_sign = fmt::format("{}\n{}\n{}\n{}", kSignatureKind, stamp, scope, sha256_hex(canonical));
  std::string key = hmac_sha256("AWS4" + credentials.secret_access_key, day);
  for (const std::string_view part : {region, service, std::string_view("aws4_request")}) key = hmac_sha256(key, part);
  added.emplace_back("authorization",
                     fmt::format("{} Credential={}/{}, SignedHeaders={}, Signature={}", kSignatureKind,
                                 credentials.access_key_id, scope, names, hex_of(hmac_sha256(key, to_sign))));
  return added;
}

}  // namespace pscloud

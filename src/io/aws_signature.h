#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pscloud {

// Who signs. The secret and the token are never shown: there is no way to print one of these.
struct AwsCredentials {
  std::string access_key_id = {};
  std::string secret_access_key = {};
  std::string session_token = {};  // empty for keys that do not expire
  std::string source = {};         // for messages: where they come from
  std::chrono::sys_seconds expires = std::chrono::sys_seconds::max();
};

using TextPairs = std::vector<std::pair<std::string, std::string>>;

// A request as it will be sent, before anything is encoded: encoded_path() and encoded_query() do that, for the wire
// and for the signature alike.
struct AwsRequest {
  std::string method = "GET";
  std::string host = {};  // with its port unless that is the scheme's own
  std::string path = "/";
  TextPairs query = {};
  TextPairs headers = {};         // to be signed; names in lower case, each once
  std::string payload_hash = {};  // sha256_hex() of the body
};

// AWS Signature Version 4: the headers to be sent besides those of the request, of which Authorization is one.
// https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
TextPairs aws_signature(const AwsRequest& request, const AwsCredentials& credentials, std::string_view region,
                        std::string_view service, std::chrono::sys_seconds now);

// Everything but letters, digits and "-_.~" becomes %XX, in a path also but the '/'. A path is encoded once, as S3
// wants it; of other services we use none but "/".
std::string encoded_path(std::string_view path);
// Sorted, as it is signed: "a=1&b=".
std::string encoded_query(const TextPairs& query);

std::string sha256_hex(std::string_view bytes);

}  // namespace pscloud

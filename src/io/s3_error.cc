#include "io/s3_error.h"

#include <fmt/core.h>

#include <chrono>
#include <cstdlib>
#include <ctime>

#include "base/clock.h"
#include "io/content_range.h"
#include "io/file_store.h"
#include "io/xml.h"

namespace pscloud {
namespace {

constexpr size_t kRefusalCharactersMax = 200;

// "arn:aws:s3:::bucket/key": what a policy has to name.
std::string resource(const S3Call& call) {
  const bool whole = std::string_view(call.permission) == "s3:ListBucket";
  return fmt::format("arn:aws:s3:::{}{}{}", call.name.bucket, whole ? "" : "/", whole ? "" : call.name.key);
}

std::string wanted_version(const S3Call& call) {
  for (const auto& [name, value] : call.headers) {
    if (name == "if-match") return version_of_etag(value);
  }
  return "none";
}

// How far this machine's clock is from the server's.
std::string clock_difference(const HttpResponse& response) {
  std::tm parts{};
  const std::string date = response.header("date");
  const char* end = ::strptime(date.c_str(), "%a, %d %b %Y %H:%M:%S GMT", &parts);
  if (end == nullptr || *end != '\0') return "wrong";
  const auto ours = unix_seconds_now();
  const int64_t seconds = ours - ::timegm(&parts);
  return fmt::format("{} s {}", std::abs(seconds), seconds < 0 ? "slow" : "fast");
}

}  // namespace

std::string s3_error_code(const HttpResponse& response) {
  const auto root = parse_xml(response.body);
  return root && root->name == "Error" ? root->text_of("Code") : "";
}

Error s3_error(const S3Call& call, const HttpResponse& response, const S3Caller& caller) {
  const std::string uri = call.name.uri();
  const std::string& bucket = call.name.bucket;
  auto parsed = parse_xml(response.body);
  const XmlElement said = parsed ? *std::move(parsed) : XmlElement{};
  const std::string code = said.text_of("Code");
  const int status = response.status;

  if (code == "NoSuchBucket") return not_found("{}: there is no bucket {} at {}", uri, bucket, caller.host);
  if (code == "NoSuchKey" || (code.empty() && status == 404)) return not_found("{}: no such file", uri);
  if (code == "InvalidAccessKeyId") {
    return invalid("{}: {} does not know the access key (it comes from {})", uri, caller.host, caller.keys);
  }
  if (code == "SignatureDoesNotMatch") {
    return invalid("{}: the secret key is not the one of the access key (they come from {})", uri, caller.keys);
  }
  if (code == "ExpiredToken" || code == "InvalidToken" || code == "TokenRefreshRequired") {
    return invalid("{}: the session token is wrong or has expired: get new keys (these come from {})", uri,
                   caller.keys);
  }
  if (code == "RequestTimeTooSkewed") {
    return invalid("{}: the clock of this machine is {}: set it right", uri, clock_difference(response));
  }
  const std::string told = response.header("x-amz-bucket-region");
  const std::string region = told.empty() ? said.text_of("Region") : told;
  if (!region.empty() && region != caller.region && (status == 301 || status == 307 || status == 400)) {
    return invalid("{}: the bucket is in {}, not in {}: set AWS_REGION={}", uri, region, caller.region, region);
  }
  if (status == 412) return version_changed(uri, wanted_version(call), "");
  if (status == 403) {
    const bool hidden = std::string_view(call.permission) == "s3:GetObject";
    return invalid("{}: denied: the keys (from {}) lack {} on {}{}", uri, caller.keys, call.permission, resource(call),
                   hidden ? "; without s3:ListBucket a file that is not there looks the same" : "");
  }
  const std::string words =
      fmt::format("{}{}{}", code, code.empty() ? "" : ": ", said.text_of("Message").substr(0, kRefusalCharactersMax));
  if (status == 429 || status >= 500) {
    return unavailable("{}: {} answers with status {} {} ({} tries)", uri, caller.host, status, words, response.tries);
  }
  return job_failed("{}: {} answers with status {} {}", uri, caller.host, status, words);
}

}  // namespace pscloud

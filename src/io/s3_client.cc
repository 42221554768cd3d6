#include "io/s3_client.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "io/s3_error.h"

namespace pscloud {
namespace {

constexpr std::string_view kS3Scheme = "s3://";
constexpr size_t kBucketBytesMin = 3;
constexpr size_t kBucketBytesMax = 255;
constexpr size_t kKeyBytesMax = 1024;

bool is_bucket_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_';
}

}  // namespace

S3Place s3_place(const std::string& bucket, const std::string& region, const std::string& endpoint) {
  if (!endpoint.empty()) {
    const std::string scheme = endpoint.substr(0, endpoint.find("://"));
    std::string host(host_of(endpoint));
    const std::string path = endpoint.substr(scheme.size() + 3 + host.size());
    const std::string_view own_port = scheme == "https" ? ":443" : ":80";
    if (host.ends_with(own_port)) host.resize(host.size() - own_port.size());  // curl leaves it out of Host
    return {.scheme = scheme, .host = host, .path = fmt::format("{}/{}", path, bucket)};
  }
  const std::string amazon = fmt::format("s3.{}.amazonaws.com{}", region, region.starts_with("cn-") ? ".cn" : "");
  // Amazon's certificate covers one label before its name, in lower case.
  const bool label = std::ranges::all_of(bucket, [](char c) { return c != '.' && c != '_' && (c < 'A' || c > 'Z'); });
  if (label) return {.scheme = "https", .host = fmt::format("{}.{}", bucket, amazon), .path = ""};
  return {.scheme = "https", .host = amazon, .path = "/" + bucket};
}

Result<S3Name> s3_name_of(const std::string& uri) {
  if (!uri.starts_with(kS3Scheme)) return invalid("{}: must be s3://bucket/key", uri);
  const size_t begin = kS3Scheme.size();
  const size_t slash = std::min(uri.find('/', begin), uri.size());
  S3Name name{.bucket = uri.substr(begin, slash - begin), .key = uri.substr(std::min(slash + 1, uri.size()))};
  if (name.bucket.size() < kBucketBytesMin || name.bucket.size() > kBucketBytesMax ||
      !std::ranges::all_of(name.bucket, is_bucket_character)) {
    return invalid("{}: '{}' is no name of a bucket", uri, name.bucket);
  }
  if (name.key.size() > kKeyBytesMax) return invalid("{}: a key has at most {} bytes", uri, kKeyBytesMax);
  return name;
}

S3Client::S3Client(AwsVariables environment, const std::function<bool()>& cancelled)
    : environment_(std::move(environment)),
      http_({.tries = aws_tries(environment_, HttpOptions{}.tries),
             .cancelled = cancelled,
             .ca_file = environment_("AWS_CA_BUNDLE")}),
      credentials_(environment_, cancelled) {}

Result<S3Client::Setup> S3Client::setup() {
  MutexLock lock(mutex_);
  if (!setup_) {
    std::string region = TRY(aws_region(environment_));
    std::string endpoint = TRY(aws_endpoint(environment_, "S3"));
    setup_ = Setup{.region = std::move(region), .endpoint = std::move(endpoint)};
  }
  return *setup_;
}

Result<HttpResponse> S3Client::call(const S3Call& call, std::stop_token stop) {
  const Setup where = TRY(setup());
  const S3Place place = s3_place(call.name.bucket, where.region, where.endpoint);
  AwsRequest to_sign{.method = call.method,
                     .host = place.host,
                     .path = fmt::format("{}/{}", place.path, call.name.key),
                     .query = call.query,
                     .headers = call.headers,
                     .payload_hash = sha256_hex(call.body)};
  to_sign.headers.emplace_back("x-amz-content-sha256", to_sign.payload_hash);
  const std::string query = encoded_query(call.query);
  const HttpRequest request{.method = call.method,
                            .url = fmt::format("{}://{}{}{}{}", place.scheme, place.host, encoded_path(to_sign.path),
                                               query.empty() ? "" : "?", query),
                            .headers = to_sign.headers,
                            .body = call.body,
                            .response_bytes_max = call.response_bytes_max,
                            .must_end = call.must_end,
                            .stall = call.stall};
  const auto sign = [&](HttpRequest& each) -> Result<> {
    const auto now = std::chrono::time_point_cast<std::chrono::seconds>(std::chrono::system_clock::now());
    const TextPairs added = aws_signature(to_sign, TRY(credentials_.get()), where.region, "s3", now);
    each.headers.insert(each.headers.end(), added.begin(), added.end());
    return {};
  };
  HttpResponse response = TRY(http_.send(request, sign, std::move(stop)).at(call.name.uri()));
  if (response.status / 100 == 2 || response.status == call.accepted_status) return response;
  return refusal(call, response);
}

Error S3Client::refusal(const S3Call& call, const HttpResponse& response) {
  const auto where = setup();
  const auto keys = credentials_.get();
  if (!where) return where.error();
  return s3_error(call, response,
                  {.region = where->region,
                   .host = s3_place(call.name.bucket, where->region, where->endpoint).host,
                   .keys = keys ? keys->source : "nowhere"});
}

}  // namespace pscloud

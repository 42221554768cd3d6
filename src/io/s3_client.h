#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/mutex.h"
#include "io/aws_credentials.h"
#include "io/http_client.h"

namespace pscloud {

// s3://bucket/key.
struct S3Name {
  std::string bucket;
  std::string key;

  std::string uri() const { return "s3://" + bucket + "/" + key; }
};
// kInvalid if it is no such URI. The key may be empty.
Result<S3Name> s3_name_of(const std::string& uri);

// Where a bucket is, and what its paths begin with.
struct S3Place {
  std::string scheme;
  std::string host;  // with a port that is not the scheme's own
  std::string path;  // "" or "/bucket"
};
// At Amazon, or at `endpoint` if that is not empty.
S3Place s3_place(const std::string& bucket, const std::string& region, const std::string& endpoint);

// One call of S3's API.
struct S3Call {
  std::string method = "GET";
  S3Name name;
  TextPairs query = {};
  HttpHeaders headers = {};
  std::string_view body = {};   // borrowed
  const char* permission = "";  // that it needs: "s3:GetObject"
  uint64_t response_bytes_max = 1 << 20;
  bool must_end = false;
  std::chrono::seconds stall = std::chrono::seconds(30);
  int accepted_status = 200;  // besides 2xx
};

// Signs calls and sends them, to Amazon or to the endpoint that AWS_ENDPOINT_URL_S3 names, and puts what is refused
// into words. Thread-safe.
class S3Client {
 public:
  // The environment says where and by which keys; it is not looked at before the first call.
  S3Client(AwsVariables environment, const std::function<bool()>& cancelled);

  Result<HttpResponse> call(const S3Call& call, std::stop_token stop = {});

  // What a body says that has the status of success but is an error, as CompleteMultipartUpload's may be.
  Error refusal(const S3Call& call, const HttpResponse& response);

 private:
  struct Setup {
    std::string region;
    std::string endpoint;  // empty for Amazon's
  };
  Result<Setup> setup() EXCLUDES(mutex_);

  const AwsVariables environment_;
  HttpClient http_;
  AwsCredentialSource credentials_;
  Mutex mutex_;
  std::optional<Setup> setup_ GUARDED_BY(mutex_);
};

}  // namespace pscloud
